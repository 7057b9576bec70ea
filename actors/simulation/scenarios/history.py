"""Pure: the recorded history of a run, in virtual time or on real processes.

Entries are facts in the order in which they became known, with the seconds of the scenario. A virtual
run with the same seed records the same history, byte for byte. Invariants and expectations see nothing
else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from typing import TypeVar

import msgspec

from .history_entry import HistoryEntry
from .jobs.job_entries import JobEntry, QueueEntry
from .run_entries import RunRecorded


class SupervisorStarted(HistoryEntry, frozen=True, gc=False):
    """A supervisor started, with the data of the store."""

    life: int
    wall_ms: int


class SupervisorEnded(HistoryEntry, frozen=True, gc=False):
    """It ended: by itself, or by kill -9."""

    life: int
    killed: bool


class Ordered(HistoryEntry, frozen=True, gc=False):
    """An operator's order that was accepted; without a worker it is for all of them."""

    order: str
    worker: str | None = None
    for_s: float | None = None
    urgency: int = 0
    """How firmly a stop ends processes: 0 asks first, 1 sends the stop signal, 2 kills."""


class Moved(HistoryEntry, frozen=True, gc=False):
    """A move of the scenario was made."""

    number: int
    what: str
    word: str
    worker: str | None = None


class SpawnBegun(HistoryEntry, frozen=True, gc=False):
    """A process that takes time to start is being started; only in virtual time."""

    worker: str
    generation: int


class Spawned(HistoryEntry, frozen=True, gc=False):
    """A process of a worker began."""

    worker: str
    generation: int
    pid: int


class SpawnRefused(HistoryEntry, frozen=True, gc=False):
    """A process could not be started."""

    worker: str
    generation: int
    error: str


class Asked(HistoryEntry, frozen=True, gc=False):
    """The supervisor asked a process to stop: by a request, or by a signal; only in virtual time."""

    worker: str
    generation: int
    signal: int | None = None
    """None: over its channel."""


class Idled(HistoryEntry, frozen=True, gc=False):
    """The supervisor told a process to idle, or to continue; only in virtual time."""

    worker: str
    generation: int
    idle: bool


class Heard(HistoryEntry, frozen=True, gc=False):
    """A frame was delivered to the monitor; only in virtual time."""

    worker: str
    generation: int
    status: str
    recover_for_s: float | None = None


class ConditionMet(HistoryEntry, frozen=True, gc=False):
    """The monitor was told that a condition of a worker's readiness is met; only in virtual time."""

    worker: str
    generation: int
    condition: str


class ProbeAnswerHeard(HistoryEntry, frozen=True, gc=False, tag="ProbeAnswered"):
    """The monitor was told an answer of the probe of a worker's liveness; only in virtual time."""

    worker: str
    generation: int
    is_good: bool


class HostResumed(HistoryEntry, frozen=True, gc=False):
    """The host slept until now."""

    slept_s: float


class DatabaseChanged(HistoryEntry, frozen=True, gc=False):
    """The database is in another state from now on."""

    state: str


class Overlapped(HistoryEntry, frozen=True, gc=False):
    """A process found another one of the same worker alive; only real processes report it."""

    worker: str
    pid: int


class Ended(HistoryEntry, frozen=True, gc=False):
    """A process ended; `by` is itself, fault, supervisor or cleanup (after kill -9)."""

    worker: str
    generation: int
    code: int | None
    signal: int | None
    by: str


class Decided(HistoryEntry, frozen=True, gc=False):
    """The supervisor decided on a death, and sent the decision to be persisted."""

    worker: str
    generation: int
    cause: str
    code: int | None
    signal: int | None
    action: str
    delay_ms: int
    streak_cleared: bool = False
    silent_s: float | None = None
    """How long the worker had really been silent by then, if known."""
    reason: str = ""
    died_at: float | None = None
    """When it died, if that is known exactly and earlier."""
    was_ready: bool = True
    """Whether it had been ready before it died."""
    uptime_ms: int = 0


class StreakEnded(HistoryEntry, frozen=True, gc=False):
    """The supervisor cleared a streak: the worker had been healthy for long enough."""

    worker: str


class Stored(HistoryEntry, frozen=True, gc=False):
    """A record is in the store."""

    kind: str
    worker: str | None = None
    generation: int = 0
    action: str | None = None
    streak_cleared: bool = False
    wall_ms: int = 0
    value: str | None = None
    restarts: int = 0
    streak: int = 0
    delay_ms: int = 0


class EventsStored(HistoryEntry, frozen=True, gc=False):
    """The events with these numbers are in the store; only in virtual time."""

    numbers: tuple[int, ...]


class Announced(HistoryEntry, frozen=True, gc=False):
    """An actor sent an event to be persisted and published; only in virtual time."""

    event: str
    worker: str | None = None
    generation: int = 0
    old: str | None = None
    new: str | None = None
    about: str | None = None
    """The breaker, the queue or the job that it is about."""
    severity: int = 0
    """Of an alert."""
    occurrences: int = 0
    """Of an alert."""
    lasted_s: float | None = None
    """How long a breaker was open that closes."""


class EventPublished(HistoryEntry, frozen=True, gc=False):
    """An event was published."""

    event: str
    worker: str | None = None
    generation: int = 0
    old: str | None = None
    new: str | None = None
    number: int | None = None
    about: str | None = None
    """The breaker that it is about."""
    since: float | None = None
    """When it happened, if known and earlier: an event is published after its record is persisted."""


class TimerSet(HistoryEntry, frozen=True, gc=False):
    """A restart is pending from now on."""

    worker: str
    generation: int
    due: float


class TimerDropped(HistoryEntry, frozen=True, gc=False):
    """A pending restart was cancelled."""

    worker: str
    generation: int


class TimerFired(HistoryEntry, frozen=True, gc=False):
    """The delay of a pending restart is over."""

    worker: str
    generation: int


class Counted(HistoryEntry, frozen=True, gc=False):
    """The counters of a worker in the store, read from outside."""

    worker: str
    restart_count: int
    streak_count: int
    failed: bool


class FinalReport(HistoryEntry, frozen=True, gc=False):
    """What the supervisor reports of a worker at the end, and whether the worker's process lives."""

    worker: str
    shown: str
    status: str | None
    generation: int
    restart_count: int
    streak_count: int
    next_attempt_s: float | None
    alive: bool
    stable: bool = False
    """Its present behaviour stays healthy if nothing is done to it."""
    waits: bool = False
    """It waits for other workers."""


class Concluded(HistoryEntry, frozen=True, gc=False):
    """The run is over; these workers still had a process."""

    left: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()
    """The ones that cannot be killed."""


AnyEntry = (
    SupervisorStarted
    | SupervisorEnded
    | Ordered
    | Moved
    | SpawnBegun
    | Spawned
    | SpawnRefused
    | Overlapped
    | Asked
    | Idled
    | Heard
    | ConditionMet
    | ProbeAnswerHeard
    | HostResumed
    | DatabaseChanged
    | Ended
    | Decided
    | StreakEnded
    | Stored
    | EventsStored
    | Announced
    | EventPublished
    | RunRecorded
    | JobEntry
    | QueueEntry
    | TimerSet
    | TimerDropped
    | TimerFired
    | Counted
    | FinalReport
    | Concluded
)

E = TypeVar("E", bound=HistoryEntry)

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(AnyEntry)


class History:
    """The entries of one run, in order."""

    __slots__ = ("_hear", "entries")

    def __init__(
        self, entries: Iterable[AnyEntry] = (), hear: Callable[[AnyEntry], None] | None = None
    ) -> None:
        """Begin with these entries; `hear` is called with every entry that is added."""
        self.entries: list[AnyEntry] = list(entries)
        self._hear = hear

    def __iter__(self) -> Iterator[AnyEntry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def add(self, entry: AnyEntry) -> None:
        """Record one."""
        self.entries.append(entry)
        if self._hear is not None:
            self._hear(entry)

    def of(self, kind: type[E], worker: str | None = None) -> list[E]:
        """The entries of one kind, of one worker or of all."""
        return [
            entry
            for entry in self.entries
            if isinstance(entry, kind) and worker in (None, getattr(entry, "worker", None))
        ]

    def encoded(self) -> bytes:
        """The whole history as lines of JSON: equal runs give equal bytes."""
        return b"".join(_encoder.encode(entry) + b"\n" for entry in self.entries)

    def digest(self) -> str:
        """A short hash of this history."""
        return sha256(self.encoded()).hexdigest()[:16]


def decoded(lines: Iterable[bytes]) -> list[AnyEntry]:
    """The entries in lines of JSON."""
    return [_decoder.decode(line) for line in lines if line.strip()]
