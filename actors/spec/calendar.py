"""Pure: when something is due, at a fixed interval or by a cron line in a time zone.

Times are integer wall-clock milliseconds, and the present is an argument. Nothing here knows of workers.
`cronsim` does the calendar of cron lines. As in Debian's cron, a time of day that a change of the clocks
leaves out is due right after the gap, and one that occurs twice is due the first time only; a line with
`*` for the minute or the hour follows the real hours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from functools import cache

import msgspec

from .validation import LONGEST_S, nearest

SHORTEST_PERIOD_MS = 1000

MOST_COUNTED = 10_000
"""Due times of a cron line beyond this many are not counted one by one."""

_FAR_MS = round(LONGEST_S * 1000)
_UNITS_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_DURATION = re.compile(r"(?:\d+[wdhms])+")
_NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FIELDS = "the five fields are minute, hour, day of month, month, day of week, as in '0 3 * * *'"


class Dues(msgspec.Struct, frozen=True):
    """The due times within some time: how many, the first and the last."""

    count: int
    first_ms: int
    last_ms: int
    is_exact: bool = True
    """Whether they were all counted; if not, there are at least this many."""


class Every(msgspec.Struct, frozen=True):
    """Due at the multiples of a period since 1970, in UTC."""

    period_ms: int

    def next_after(self, wall_ms: int) -> int:
        """The first due time after this one."""
        return (wall_ms // self.period_ms + 1) * self.period_ms

    def between(self, after_ms: int, until_ms: int) -> Dues | None:
        """The due times after the first time, up to and including the second; None if there are none."""
        count = until_ms // self.period_ms - after_ms // self.period_ms
        if count <= 0:
            return None
        return Dues(count, self.next_after(after_ms), until_ms // self.period_ms * self.period_ms)

    def __str__(self) -> str:
        return f"every {duration_words(self.period_ms)}"


class Cron(msgspec.Struct, frozen=True):
    """Due when the clocks of a time zone show what a cron line says."""

    line: str
    timezone: str = "UTC"

    def next_after(self, wall_ms: int) -> int:
        """The first due time after this one."""
        return next(self._following(wall_ms), wall_ms + _FAR_MS)

    def between(self, after_ms: int, until_ms: int) -> Dues | None:
        """The due times after the first time, up to and including the second; None if there are none."""
        count, first, last = 0, 0, 0
        for due in self._following(after_ms):
            if due > until_ms:
                break
            if count == MOST_COUNTED:
                return Dues(count, first, self._latest(until_ms), is_exact=False)
            count, first, last = count + 1, first or due, due
        return Dues(count, first, last) if count else None

    def _following(self, wall_ms: int) -> Iterator[int]:
        from cronsim import CronSim  # half a millisecond that only schedules need

        for found in CronSim(_plain(self.line), _local(wall_ms, self.timezone)):
            due = round(found.timestamp()) * 1000
            # In the hour that occurs twice, cronsim begins with the first of both.
            if due > wall_ms:
                yield due

    def _latest(self, until_ms: int) -> int:
        from cronsim import CronSim

        back = CronSim(_plain(self.line), _local(until_ms + 1000, self.timezone), reverse=True)
        latest = round(next(back).timestamp()) * 1000
        while (later := self.next_after(latest)) <= until_ms:
            latest = later
        return latest

    def __str__(self) -> str:
        return f"cron {self.line!r} in {self.timezone}"


Calendar = Every | Cron


# ── what a person writes ─────────────────────────────────────────────────────────────────


def duration_ms(text: str) -> int | None:
    """The milliseconds of a duration such as 90s, 15m or 1h30m; None if it is not one."""
    plain = text.replace(" ", "").lower()
    if not _DURATION.fullmatch(plain):
        return None
    return sum(int(part[:-1]) * _UNITS_MS[part[-1]] for part in re.findall(r"\d+[wdhms]", plain))


def duration_words(milliseconds: int) -> str:
    """A duration as a person writes it: `1h30m`."""
    left, words = milliseconds // 1000, ""
    for unit in ("d", "h", "m", "s"):
        many, left = divmod(left, _UNITS_MS[unit] // 1000)
        words += f"{many}{unit}" if many else ""
    return words or "0s"


def duration_problem(text: str) -> str | None:
    """Why a text is not the period of a schedule; None if it is."""
    milliseconds = duration_ms(text[:64])
    if milliseconds is None:
        return "must be a duration in w, d, h, m and s, such as '90s', '15m' or '1h30m'"
    if not SHORTEST_PERIOD_MS <= milliseconds <= _FAR_MS:
        return "must be at least 1s" if milliseconds < SHORTEST_PERIOD_MS else "is too long"
    return None


def cron_problem(line: str) -> str | None:
    """Why a line is not a cron line, or has no date; None if it is one."""
    from cronsim import CronSim, CronSimError

    plain = _plain(line[:256])
    if plain.startswith("@"):
        return "is not a known nickname" + (
            nearest(plain, _NICKNAMES) or f"; they are {', '.join(_NICKNAMES)}"
        )
    if len(plain.split()) != 5:
        return f"has {len(plain.split())} fields; {_FIELDS}"
    start = datetime(2024, 1, 1, tzinfo=UTC)
    try:
        return None if next(CronSim(plain, start), None) else "has no date in fifty years"
    except CronSimError as error:
        return _cron_error(plain, str(error))


def _cron_error(line: str, error: str) -> str:
    """What is wrong with a line; a day that its months do not have is not a wrong number."""
    from cronsim import CronSim, CronSimError

    minute, hour, day, month, weekday = line.split()
    try:
        CronSim(f"{minute} {hour} {day} * {weekday}", datetime(2024, 1, 1, tzinfo=UTC))
    except CronSimError:
        return f"is not a cron line: {error.lower()}; {_FIELDS}"
    if "day" not in error:
        return f"is not a cron line: {error.lower()}; {_FIELDS}"
    return f"has no date: there is no day {day} in month {month}"


def timezone_problem(name: str) -> str | None:
    """Why a name is not one of a time zone; None if it is."""
    if name == "UTC" or _zone(name) is not None:
        return None
    import zoneinfo

    known = zoneinfo.available_timezones()
    if not known:
        return "cannot be looked up: this machine has no time zone data; install the package tzdata"
    near = nearest(name, sorted(known))
    return "is not a time zone such as UTC or Europe/Berlin" + near


def _plain(line: str) -> str:
    words = " ".join(line.split())
    return _NICKNAMES.get(words.lower(), words)


def _local(wall_ms: int, timezone: str) -> datetime:
    return datetime.fromtimestamp(wall_ms // 1000, _zone(timezone) or UTC)


@cache
def _zone(name: str) -> tzinfo | None:
    import zoneinfo

    if name == "UTC":
        return UTC
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None
