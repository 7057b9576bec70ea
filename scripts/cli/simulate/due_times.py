"""Pure: when a scheduled worker is due, as far as `rekindle simulate` shows it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import takewhile
from zoneinfo import ZoneInfo

from rekindle.actors.spec.policies.schedule import SchedulePolicy

SHOWN = 5
_BEFORE, _AFTER = 2, 3
_AROUND_MS = 26 * 3_600_000
_AHEAD = timedelta(days=366)


@dataclass(frozen=True, slots=True)
class Outlook:
    """The due times of a schedule after a moment."""

    policy: SchedulePolicy
    dues_ms: tuple[int, ...]
    change_ms: int | None
    """When the clocks of its time zone change next, within a year."""
    around_ms: tuple[int, ...]
    """The due times around that."""

    @property
    def zone(self) -> tzinfo:
        """The time zone of the schedule."""
        return zone_of(self.policy.timezone)


def outlook(policy: SchedulePolicy, from_ms: int) -> Outlook:
    """The next due times, and those around the next change of the clocks."""
    dues = tuple(due for due, _ in zip(_following(policy, from_ms), range(SHOWN), strict=False))
    change = _clock_change(zone_of(policy.timezone), from_ms)
    around = () if change is None else _around(policy, max(from_ms, change - _AROUND_MS), change)
    return Outlook(policy, dues, change, around)


def zone_of(name: str) -> tzinfo:
    """The time zone with this name, which was checked before."""
    return UTC if name == "UTC" else ZoneInfo(name)


def _following(policy: SchedulePolicy, after_ms: int) -> Iterator[int]:
    calendar = policy.calendar
    while True:
        after_ms = calendar.next_after(after_ms)
        yield after_ms


def _around(policy: SchedulePolicy, after_ms: int, change_ms: int) -> tuple[int, ...]:
    """The last due times before a moment and the first ones from it on, within about a day."""
    near = takewhile(lambda due: due <= change_ms + _AROUND_MS, _following(policy, after_ms))
    before: list[int] = []
    later: list[int] = []
    for due in near:
        (before if due < change_ms else later).append(due)
        if len(later) == _AFTER:
            break
    return (*before[-_BEFORE:], *later)


def _clock_change(zone: tzinfo, from_ms: int) -> int | None:
    """The next second from which on the zone has another distance to UTC; None: not within a year."""
    start = datetime.fromtimestamp(from_ms // 1000, UTC)
    known = start.astimezone(zone).utcoffset()
    early, late = start, start
    while late.astimezone(zone).utcoffset() == known:
        if late - start > _AHEAD:
            return None
        early, late = late, late + timedelta(days=1)
    while late - early > timedelta(seconds=1):
        middle = early + timedelta(seconds=(late - early) // timedelta(seconds=2))
        if middle.astimezone(zone).utcoffset() == known:
            early = middle
        else:
            late = middle
    return round(late.timestamp()) * 1000
