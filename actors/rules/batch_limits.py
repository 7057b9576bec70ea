"""Pure: what waits for the store, within bounds. Rows may be given up, counts never."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from ..deaths.crash_bundle import lean
from ..deaths.death import Action
from ..facts.records import (
    AlertKept,
    DeathAmended,
    DeathRecord,
    EndKept,
    HealthMirrored,
    Record,
    ReleaseNoted,
    RestartsCounted,
    StreakCleared,
    UsageNoted,
)


def compacted(waiting: Iterable[Record], keep: int) -> list[Record]:
    """The records with the oldest deaths reduced to their counts; the last ones are kept in full."""
    records = _last_words(waiting)
    split = max(0, len(records) - keep)
    tallies: dict[str, _Tally] = defaultdict(_Tally)
    others: list[Record] = []
    for record in records[:split]:
        match record:
            case DeathRecord(component_id=id_, action=Action.RESTART):
                tallies[id_].count_death(record)
            case RestartsCounted(component_id=id_):
                tallies[id_].count(record)
            case StreakCleared(component_id=id_):
                tallies[id_].clear(record)
            case DeathRecord(component_id=id_, action=Action.NONE | Action.NOTIFY_ONLY | Action.HELD):
                tallies[id_].lost = record.generation
            case DeathAmended() | ReleaseNoted():
                others += [record] if record.generation > tallies[record.component_id].lost else []
            case HealthMirrored() | UsageNoted() | EndKept():
                pass
            case _:
                # A reset or a failure, say: what was counted before it must stay before it.
                others += [*tallies[getattr(record, "component_id", "")].taken(), record]
    rest = [record for tally in tallies.values() for record in tally.taken()]
    return [*others, *rest, *records[split:]]


def _last_words(waiting: Iterable[Record]) -> list[Record]:
    """The records without what was said of an alert before the last time: each says all of it."""
    records = list(waiting)
    last = {each.alert.id: index for index, each in enumerate(records) if isinstance(each, AlertKept)}
    return [
        each
        for index, each in enumerate(records)
        if not isinstance(each, AlertKept) or last[each.alert.id] == index
    ]


def without_long_parts(record: DeathRecord | DeathAmended) -> DeathRecord | DeathAmended:
    """The record, with a bundle that takes little memory."""
    return record if record.bundle is None else replace(record, bundle=lean(record.bundle))


class _Tally(msgspec.Struct):
    """What the given-up records of one worker come to."""

    cleared: StreakCleared | None = None
    counted: RestartsCounted | None = None
    """Since the streak was cleared, as far as the streak goes."""
    lost: int = 0
    """The latest generation whose row is given up; how it ended at last is of no use any more."""

    def clear(self, record: StreakCleared) -> None:
        self.cleared = record
        if self.counted is not None:
            self.counted = replace(self.counted, streak=0)

    def count(self, record: RestartsCounted) -> None:
        self.lost = record.last_generation
        so_far = self.counted
        self.counted = (
            record
            if so_far is None
            else replace(
                record, restarts=so_far.restarts + record.restarts, streak=so_far.streak + record.streak
            )
        )

    def count_death(self, death: DeathRecord) -> None:
        id_, at = death.component_id, death.died_at_wall_ms
        if death.streak_cleared:
            self.clear(StreakCleared(id_, at))
        self.count(
            RestartsCounted(
                component_id=id_, restarts=1, streak=1, at_wall_ms=at, last_generation=death.generation
            )
        )

    def taken(self) -> list[Record]:
        """Its records, in the order in which they count; afterwards there are none."""
        records: list[Record] = [record for record in (self.cleared, self.counted) if record is not None]
        self.cleared = self.counted = None
        return records
