"""The persistence actor: the only writer of the store, it serialises all restart-counter writes.

Owns what is not written yet. A record joins the batch; the first one sends `CommitBatch` to
itself, and all that was queued before that message arrives is committed together. A store
that is locked, full or gone costs nothing but time: the records wait, in order, and are tried
again with growing delays until they are in. One that another supervisor has taken over is left
alone for good: what waits would overwrite what that one knows. Tells the Supervisor `BatchKept`, the Broker
`EventsKept` and the JobDesk `JobsSettled`, and the first two when the store degrades and recovers. After a
death the Supervisor comes first, and the Broker when the restart is on its way.

It lives on a lane of its own, since committing blocks.
"""

from __future__ import annotations

from collections import deque
from typing import ClassVar

from loguru import logger

from .errors import StoreError, StoreOwnedError
from .facts.commit_times import CommitTimes
from .facts.jobs import JobSettled
from .facts.records import (
    DeathAmended,
    DeathRecord,
    EventRecord,
    HealthMirrored,
    Record,
    StateRemoved,
)
from .messages import Event, EventsLost, StoodDown, StoreDegraded, StoreRecovered, is_event
from .messages.internal import (
    Attend,
    BatchKept,
    CommitBatch,
    Flush,
    Flushed,
    JobsSettled,
    Keep,
    KeepMirror,
    KeepTogether,
    PersistenceMessage,
    PruneDue,
    RetryCommit,
    TellKept,
)
from .messages.internal.to_broker import EventsKept
from .ports import Receiver, Runtime, Store, Timer
from .rules.batch_limits import compacted, without_long_parts
from .runtime.resilient_actor import ResilientActor, tell
from .spec.retention_policy import Retention

RETRY_DELAYS_S = (1.0, 2.0, 4.0, 8.0, 16.0)
"""The last one repeats until the store answers."""

MOST_WAITING = 10_000
"""Past this many waiting records the oldest deaths keep their counts and lose their rows."""

PRUNE_AFTER_S = 600.0
"""How long after a commit what is too old is deleted."""

PRUNE_AGAIN_S = 0.05
"""How long to leave the store to others between two chunks."""

EARLIEST_WALL_MS = 1_577_836_800_000
"""The year 2020: a clock that shows less has not been set yet."""

MOST_EVENTS = 10_000
"""Past this many waiting events the oldest ones are given up."""

MOST_BUNDLES_WAITING = 500
"""Past this many, deaths wait without the long parts of their bundles: they could fill our memory."""


class PersistenceActor(ResilientActor):
    """Writes what the others decided."""

    lane: ClassVar[str] = "store"

    def __init__(
        self,
        *,
        runtime: Runtime,
        store: Store,
        retention: Retention | None = None,
        times: CommitTimes | None = None,
    ) -> None:
        super().__init__()
        self._retention = retention or Retention()
        self._prune_timer: Timer | None = None
        self._runtime = runtime
        self._began = (runtime.clock.monotonic(), runtime.clock.wall_ms())
        self._store = store
        self._times = times or CommitTimes()
        self._supervisor: Receiver | None = None
        self._desk: Receiver | None = None
        self._waiting: list[Record] = []
        self._events: deque[EventRecord] = deque()
        self._mirror: dict[str, HealthMirrored] = {}
        self._commit_queued = False
        self._compact_above = 0
        self._untold: int | None = None
        """The last event that is kept and not told yet."""
        self._failures = 0
        self._stood_down = False
        self._trouble: str | None = None
        """Why the store takes nothing, as everyone has heard."""

    def recover(self) -> None:
        """Keep the records, which are facts, and try again."""
        self._tell_kept()
        self._commit_queued = False
        self._failures += 1
        if self._waiting:
            self._degraded("the persistence actor raised and tries again")
        self._retry_later()

    def handle(self, message: PersistenceMessage) -> None:
        """Take a record, or write what has gathered."""
        if self._stood_down:
            if isinstance(message, Flush):
                tell(message.reply_to, Flushed(len(self._waiting)))
            return
        self._tell_kept()  # before anything that may take its time, or go wrong
        match message:
            case Keep(record=record):
                self._keep(record)
                self._queue_commit()
            case KeepTogether(items=items):
                self._keep_together(items)
            case CommitBatch():
                self._commit_queued = False
                if not self._failures:
                    self._commit()
            case PruneDue():
                self._prune()
            case RetryCommit(attempt=attempt):
                if attempt == self._failures:
                    self._commit()
            case KeepMirror(states=states):
                self._mirror.update((state.component_id, state) for state in states)
                if not self._commit_queued and not self._failures:
                    self._commit()  # it has waited already for others to join it
            case TellKept():
                pass  # whatever comes has it told
            case Flush(reply_to=reply_to):
                self._commit()
                self._tell_kept()
                tell(reply_to, Flushed(len(self._waiting)))
            case Attend(supervisor=supervisor, broker=broker, desk=desk):
                self._supervisor, self.broker, self._desk = supervisor, broker, desk
            case unknown:
                self.unexpected(unknown)

    def _keep_together(self, items: tuple[Record | Event, ...]) -> None:
        for item in items:
            if isinstance(item, EventRecord):
                self._events.append(item)
            elif not is_event(item):  # the Broker has numbered them all
                self._keep(item)
        if len(self._events) > MOST_EVENTS:
            self._give_up_events(len(self._events) - MOST_EVENTS // 2)
        self._queue_commit()

    def _give_up_events(self, count: int) -> None:
        """Give up the oldest; that they are missing is an event itself."""
        lost = [self._events.popleft() for _ in range(count)]
        logger.warning("{} events could not be kept", count)
        tell(self.broker, EventsLost(count, lost[0].id, lost[-1].id))

    def _keep(self, record: Record) -> None:
        if isinstance(record, HealthMirrored):
            self._mirror[record.component_id] = record  # the latest word, whoever has it
            return
        if len(self._waiting) > MOST_BUNDLES_WAITING and isinstance(record, DeathRecord | DeathAmended):
            record = without_long_parts(record)
        self._waiting.append(record)
        if isinstance(record, StateRemoved):
            self._mirror.pop(record.component_id, None)
        if len(self._waiting) > max(MOST_WAITING, self._compact_above):
            self._waiting = compacted(self._waiting, MOST_WAITING // 2)
            # Some of it is never given up: looking through all of it for every record would take ever longer.
            self._compact_above = len(self._waiting) + MOST_WAITING // 4

    def _queue_commit(self) -> None:
        if not self._commit_queued:
            self._commit_queued = True
            self.actor_ref.tell(CommitBatch())

    def _commit(self) -> None:
        batch, events, mirror = self._waiting, self._events, self._mirror
        settled: tuple[JobSettled, ...] = ()
        try:
            if batch or events or mirror:
                begun = self._runtime.clock.monotonic()
                settled = self._store.commit((*batch, *events, *mirror.values()))
                self._times.took(self._runtime.clock.monotonic() - begun)
        except StoreOwnedError as error:
            self._stand_down(error)
            return
        except StoreError as error:
            self._failed(error)
            return
        self._waiting, self._events, self._mirror = [], deque(), {}
        self._compact_above = 0
        self._prune_later(PRUNE_AFTER_S)
        deaths = tuple((r.component_id, r.generation) for r in batch if isinstance(r, DeathRecord))
        if events:
            self._untold = events[-1].id
        if deaths:
            tell(self._supervisor, BatchKept(deaths))
        if deaths and not self._failures:
            # A restart is more urgent than that everyone hears of the death, which must not be long, though.
            self._runtime.at_leisure(self.actor_ref, TellKept())
        else:
            self._tell_kept()
        if settled:
            tell(self._desk, JobsSettled(settled))
        if self._failures:
            self._failures, self._trouble = 0, None
            logger.info("the store is back, {} records were written", len(batch))
            self._announce(StoreRecovered())

    def _tell_kept(self) -> None:
        if self._untold is not None:
            tell(self.broker, EventsKept(self._untold))
            self._untold = None

    def _prune_later(self, delay_s: float) -> None:
        """Have a look some time after something was written; who writes nothing wakes up never."""
        if self._prune_timer is None:
            self._prune_timer = self._runtime.timers.after(delay_s, self.actor_ref, PruneDue())

    def _prune(self) -> None:
        self._prune_timer = None
        if self._failures:
            return  # the first commit that succeeds brings us back
        try:
            more = self._store.prune(self._retention, self._plausible_wall_ms())
        except StoreOwnedError as error:
            self._stand_down(error)
            return
        except StoreError as error:
            logger.warning("what is too old could not be deleted: {}", str(error))
            return
        if more:
            self._prune_later(PRUNE_AGAIN_S)

    def _plausible_wall_ms(self) -> int:
        """The time of day, or what it would be had nobody set the clock forward: nothing is old by that.

        A machine without a battery begins in 1970: its clock is not set forward, but right.
        """
        now_ms, (began, began_ms) = self._runtime.clock.wall_ms(), self._began
        if began_ms < EARLIEST_WALL_MS:
            return now_ms
        return min(now_ms, began_ms + round((self._runtime.clock.monotonic() - began) * 1000))

    def _stand_down(self, error: StoreOwnedError) -> None:
        """Leave the store alone for good: what we know is not true of another's workers."""
        self._stood_down = True
        logger.warning("the store is another supervisor's now, nothing more is written: {}", str(error))
        self._announce(StoodDown(str(error)))
        self._degraded(str(error))

    def _failed(self, error: StoreError) -> None:
        self._failures += 1
        if self._failures == 1:
            logger.warning("the store takes nothing, going on from memory: {}", error)
        self._degraded(str(error))
        self._retry_later()

    def _degraded(self, reason: str) -> None:
        """Say so: to the Supervisor each time, who shows how much waits; to everyone when it is news."""
        event = StoreDegraded(reason, len(self._waiting))
        tell(self._supervisor, event)
        if reason != self._trouble:
            self._trouble = reason
            tell(self.broker, event)

    def _retry_later(self) -> None:
        delay = RETRY_DELAYS_S[min(self._failures, len(RETRY_DELAYS_S)) - 1]
        self._runtime.timers.after(delay, self.actor_ref, RetryCommit(self._failures))

    def _announce(self, event: StoreRecovered | StoodDown) -> None:
        tell(self._supervisor, event)
        tell(self.broker, event)
