"""Pure: the records that wait for the store, within bounds. Rows may be dropped, counts never."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from ..deaths.crash_bundle import lean
from ..deaths.death import Action
from ..facts.generations import GenerationEnded, GenerationStarted
from ..facts.records import (
    AlertKept,
    DeathAmended,
    DeathRecord,
    EndKept,
    EventRecord,
    HealthMirrored,
    MetaSet,
    Record,
    ReleaseNoted,
    RestartsCounted,
    StateRemoved,
    StreakCleared,
    UsageNoted,
)
from ..facts.runs import RunKept
from ..messages import EventsLost

MOST_WAITING = 10_000
"""Above this many waiting records the oldest deaths keep their counts and lose their rows."""

MOST_EVENTS = 10_000
"""Above this many waiting events the oldest are dropped."""

MOST_BUNDLES_WAITING = 500
"""Above this many waiting records a death waits without the long parts of its bundle, to bound the memory."""


class WaitingRecords:
    """Records and events of one transaction."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.events: deque[EventRecord] = deque()
        self.mirror: dict[str, HealthMirrored] = {}
        """The latest health of each worker."""
        self._compact_above = 0

    @classmethod
    def of(cls, records: Iterable[Record]) -> WaitingRecords:
        """These records, whose events are published already."""
        batch = cls()
        for record in records:
            batch.events.append(record) if isinstance(record, EventRecord) else batch.add(record)
        return batch

    @property
    def items(self) -> tuple[Record, ...]:
        """Everything to write, in order."""
        return (*self.records, *self.events, *self.mirror.values())

    @property
    def last_event_id(self) -> int:
        """The number of its latest event; 0 without events."""
        return self.events[-1].id if self.events else 0

    def add(self, record: Record) -> None:
        """Add a record; above the limits, shorten what waits."""
        if isinstance(record, HealthMirrored):
            self.mirror[record.component_id] = record
            return
        if len(self.records) > MOST_BUNDLES_WAITING and isinstance(record, DeathRecord | DeathAmended):
            record = without_long_parts(record)
        self.records.append(record)
        if isinstance(record, StateRemoved):
            self.mirror.pop(record.component_id, None)
        self._compact()

    def put_back(self, earlier: WaitingRecords) -> None:
        """Put the records of a failed commit before those that arrived since."""
        removed = {record.component_id for record in self.records if isinstance(record, StateRemoved)}
        mirror = {id_: state for id_, state in earlier.mirror.items() if id_ not in removed}
        self.records = [*earlier.records, *self.records]
        self.events.extendleft(reversed(earlier.events))
        self.mirror = mirror | self.mirror
        self._compact_above = max(self._compact_above, earlier._compact_above)
        self._compact()

    def give_up_events(self) -> EventsLost | None:
        """Above the limit, drop the oldest events; return the event that reports the loss."""
        if len(self.events) <= MOST_EVENTS:
            return None
        lost = [self.events.popleft() for _ in range(len(self.events) - MOST_EVENTS // 2)]
        return EventsLost(len(lost), lost[0].id, lost[-1].id)

    def _compact(self) -> None:
        if len(self.records) > max(MOST_WAITING, self._compact_above):
            self.records = compacted(self.records, MOST_WAITING // 2)
            # Some records are never dropped: compacting at every further record would be quadratic.
            self._compact_above = len(self.records) + MOST_WAITING // 4


def compacted(waiting: Iterable[Record], keep: int) -> list[Record]:
    """The records with the oldest deaths reduced to their counts; the last ones are kept in full."""
    records = _latest_states(waiting)
    split = max(0, len(records) - keep)
    tallies: dict[str, _Tally] = defaultdict(_Tally)
    others: list[Record] = []
    latest: dict[tuple[type, str], Record] = {}
    """The last start and the last stop of each worker: earlier ones say nothing more."""
    for record in records[:split]:
        match record:
            case DeathRecord(component_id=id_, action=Action.RESTART):
                tallies[id_].count_death(record)
            case RestartsCounted(component_id=id_):
                tallies[id_].count(record)
            case StreakCleared(component_id=id_):
                tallies[id_].clear(record)
            case DeathRecord(
                component_id=id_,
                action=Action.NONE | Action.NOTIFY_ONLY | Action.HELD | Action.RESTART_UNCOUNTED,
            ):
                tallies[id_].lost = record.generation
                # Without its row, the next supervisor would take the process for one that this one lost.
                latest[GenerationEnded, id_] = GenerationEnded(id_, record.generation)
            case DeathAmended() | ReleaseNoted():
                others += [record] if record.generation > tallies[record.component_id].lost else []
            case HealthMirrored() | UsageNoted() | EndKept() | RunKept():
                pass
            case GenerationStarted() | GenerationEnded():
                latest[type(record), record.component_id] = record
            case _:
                # For example a reset or a failure: what was counted before it must stay before it.
                others += [*tallies[getattr(record, "component_id", "")].taken(), record]
    rest = [record for tally in tallies.values() for record in tally.taken()]
    return [*others, *rest, *latest.values(), *records[split:]]


def _latest_states(waiting: Iterable[Record]) -> list[Record]:
    """The records with only the latest state of each alert and setting: every record carries all of it."""
    records = list(waiting)
    last = {key: index for index, each in enumerate(records) if (key := _key(each)) is not None}
    return [each for index, each in enumerate(records) if (key := _key(each)) is None or last[key] == index]


def _key(record: Record) -> tuple[type, object] | None:
    """What a later record of the same key replaces the record for."""
    match record:
        case AlertKept(alert=alert):
            return AlertKept, alert.id
        case MetaSet(key=key):
            return MetaSet, key
        case RunKept(run=run):
            return RunKept, (run.component_id, run.number)
        case _:
            return None


def without_long_parts(record: DeathRecord | DeathAmended) -> DeathRecord | DeathAmended:
    """The record, with a bundle that takes little memory."""
    return record if record.bundle is None else replace(record, bundle=lean(record.bundle))


class _Tally(msgspec.Struct):
    """The sums over the dropped records of one worker."""

    cleared: StreakCleared | None = None
    counted: RestartsCounted | None = None
    """Its streak counts only since the streak was cleared."""
    lost: int = 0
    """The latest generation whose row is dropped: amendments of that row are dropped too."""

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
        """Its records, in the order in which they count; the tally is empty afterwards."""
        records: list[Record] = [record for record in (self.cleared, self.counted) if record is not None]
        self.cleared = self.counted = None
        return records
