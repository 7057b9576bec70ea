"""The persistence actor: the only way to the store. It serialises all restart-counter writes.

Every record and every event goes to this actor. It numbers the events, collects records and
events in a batch, has the batch committed in one transaction, and hands the committed events to
the Broker, which publishes them. The store writer, an actor on a thread of its own, calls the
store; this actor never blocks, and so it publishes from memory when the store does not answer.

    Persist ─▶ batch ─▶ CommitBatch ─▶ Commit to the store writer ─▶ Committed ─▶ published
                 ▲                             │
                 └────── retry later ◀── CommitFailed

The first record of a batch sends `CommitBatch` to this actor; what was queued before that message
joins the batch. At most one commit is under way; what arrives meanwhile forms the next batch. An
event that comes without a record waits a moment for one: a commit of its own would delay the
commit of a death that follows it. Usage samples are written with the next commit.

While the store is locked, full or missing, the batch waits in order and is retried with growing
delays. After another supervisor has taken over the store, this actor never writes again: a write
would overwrite the state of the other supervisor.

The Supervisor is notified when the store degrades, recovers or is taken over; the store writer
sends it `BatchCommitted` for deaths. The JobDesk gets `JobsSettled`.
"""

from __future__ import annotations

from collections.abc import Iterable

from loguru import logger

from .errors import StoreError, StoreOwnedError
from .facts.commit_times import CommitTimes
from .facts.jobs import JobSettled
from .facts.records import Record
from .messages import Event, Passing, StoodDown, StoreDegraded, StoreRecovered, is_event
from .messages.internal.to_broker import Notice, Publish, QueuesSeen, WorkerForgotten, WorkerKnown
from .messages.internal.to_desks import JobsSettled
from .messages.internal.to_monitor import Attend
from .messages.internal.to_persistence import (
    Commit,
    CommitBatch,
    CommitDue,
    CommitFailed,
    Committed,
    Flush,
    Flushed,
    FlushForUpgrade,
    Persist,
    PersistenceMessage,
    PublishOverdue,
    ReportCommit,
    RetryCommit,
)
from .messages.internal.to_supervisor import JobChanged
from .ports import Receiver, Runtime, Store, Timer
from .rules.outbox import Outbox
from .rules.waiting_records import WaitingRecords
from .runtime.resilient_actor import ResilientActor, tell
from .spec.policies.retention_policy import Retention
from .store_writer import StoreWriter, set_aside

RETRY_DELAYS_S = (1.0, 2.0, 4.0, 8.0, 16.0)
"""The last one repeats until the store answers."""

SAVE_TIMEOUT_S = 2.0
"""How long an event waits for the store before it is published from memory."""

SAMPLES_WAIT_S = 300.0
"""How long usage samples wait at most for something else to be written."""


class PersistenceActor(ResilientActor):
    """Numbers events, persists records and events, and has the events published."""

    def __init__(
        self,
        *,
        runtime: Runtime,
        store: Store,
        last_id: int = 0,
        linger_s: float = 0.0,
        retention: Retention | None = None,
        times: CommitTimes | None = None,
        waiting: Iterable[Record] = (),
    ) -> None:
        super().__init__()
        self.persistence = self.actor_ref
        self._runtime = runtime
        self._linger_s = linger_s
        self._writer: Receiver = runtime.start(
            StoreWriter,
            runtime=runtime,
            store=store,
            persistence=self.actor_ref,
            retention=retention or Retention(),
            times=times or CommitTimes(),
        )
        self._to: Attend | None = None
        self._outbox = Outbox(last_id)
        self._taken: object = None
        """The message whose items were taken, until it is handled: after an exception it comes again."""
        self._batch = WaitingRecords.of(waiting)
        self._in_flight: WaitingRecords | None = None
        """What the store writer is writing."""
        self._number = 0
        """Of the latest commit."""
        self._is_due = False
        """Commit the batch as soon as the store writer is free."""
        self._flushes: list[Receiver] = []
        self._flushing: list[Receiver] = []
        """The receivers that get `Flushed` when the commit that is under way ends."""
        self._sampled_at: float | None = None
        """Since when a usage sample has waited in the batch."""
        self._failures = 0
        self._stood_down = False
        self._trouble: str | None = None
        """Why the store is unavailable, as published last."""
        self._linger_timer: Timer | None = None
        self._overdue_timer: Timer | None = None

    def recover(self) -> None:
        """Keep the records, which are facts, and try again; ask for a result that may have been lost."""
        self._linger_timer = self._overdue_timer = None
        self._failures += 1
        if self._batch.records:
            self._degraded("the persistence actor raised an exception and tries again")
        if self._in_flight is not None:
            tell(self._writer, ReportCommit())
        self._retry_later()

    def dropped(self, message: PersistenceMessage) -> None:
        """Persist the records at least: restart history must not depend on the events."""
        if isinstance(message, Persist) and message is not self._taken:
            for item in message.items:
                if not is_event(item):
                    self._add(item)

    def handle(self, message: PersistenceMessage) -> None:
        """Take records and events, or continue with what the store writer reports."""
        match message:
            case Persist(items=items, is_urgent=is_urgent):
                self._take(message, items)
                self._ask_for_commit() if is_urgent else self._commit_soon()
            case CommitBatch():
                if self._is_due and not self._failures:
                    self._commit()
            case Committed(number=number, settled=settled):
                if self._in_flight is not None and number == self._number:
                    self._committed(self._in_flight, settled)
            case CommitFailed(number=number, error=error):
                self._commit_failed(number, error)
            case RetryCommit(attempt=attempt):
                if attempt == self._failures:
                    self._commit()
            case CommitDue():
                self._linger_timer = None
                self._ask_for_commit()
            case PublishOverdue():
                self._overdue_timer = None
                self._stop_waiting()
            case Flush(reply_to=reply_to):
                self._flushes.append(reply_to)
                self._commit()
            case FlushForUpgrade(reply_to=reply_to):
                self._hand_over(reply_to)
            case Attend():
                self._to = message
                tell(self._writer, message)
            case WorkerKnown() | WorkerForgotten() | JobChanged() | QueuesSeen():
                self._take(message, (message,))
            case Passing():
                self._take(message, (message,))
                self._commit_old_samples()
            case _ if is_event(message):
                self._take(message, (message,))
                self._commit_soon()
            case _:
                self.refuse(message)
        self._publish()
        self._taken = None  # it was handled: the same object may be sent again

    # ── incoming items ────────────────────────────────────────────────────────────────────

    def _take(self, message: object, items: tuple[Record | Event | Notice, ...]) -> None:
        """Add these items to the batch and the outbox, once."""
        if message is self._taken:
            return
        self._taken = message
        for item in items:
            try:
                self._take_one(item)
            except Exception as error:  # noqa: BLE001  # the items behind it must be written
                set_aside(item, error, self.actor_ref)

    def _take_one(self, item: Record | Event | Notice) -> None:
        clock = self._runtime.clock
        match item:
            case Passing():
                self._outbox.note(item, item.at_wall_ms, clock.monotonic())
                self._add(item.noted)
            case WorkerKnown() | WorkerForgotten() | JobChanged() | QueuesSeen():
                self._outbox.note(item, clock.wall_ms(), clock.monotonic())
            case _:
                self._add_event(item) if is_event(item) else self._add(item)

    def _add(self, record: Record) -> None:
        if not self._stood_down:
            self._batch.add(record)

    def _add_event(self, event: Event) -> None:
        clock = self._runtime.clock
        record = self._outbox.take(event, clock.wall_ms(), clock.monotonic())
        if self._stood_down:
            return
        self._batch.events.append(record)
        lost = self._batch.give_up_events()
        if lost is not None:
            logger.warning("store: {} events could not be persisted and are lost", lost.count)
            self.actor_ref.tell(lost)

    # ── to the store ─────────────────────────────────────────────────────────────────────

    def _ask_for_commit(self) -> None:
        if not self._is_due:
            self._is_due = True
            if self._in_flight is None:
                self.actor_ref.tell(CommitBatch())

    def _commit_soon(self) -> None:
        if not self._linger_s:
            self._ask_for_commit()
        elif self._linger_timer is None and not self._is_due:
            self._linger_timer = self._runtime.timers.after(self._linger_s, self.actor_ref, CommitDue())

    def _commit_old_samples(self) -> None:
        """Commit for the sake of usage samples only if nothing else has been written for long."""
        now = self._runtime.clock.monotonic()
        self._sampled_at = now if self._sampled_at is None else self._sampled_at
        if now - self._sampled_at >= SAMPLES_WAIT_S:
            self._ask_for_commit()

    def _commit(self) -> None:
        """Send the batch to the store writer, unless it is busy: its reply then calls this again."""
        if self._in_flight is not None:
            return
        self._flushing, self._flushes = self._flushes, []
        if self._stood_down:
            self._answer_flushes()
            return
        batch, self._batch = self._batch, WaitingRecords()
        self._is_due, self._sampled_at = False, None
        items = batch.items
        if not items:
            self._committed(batch, ())
            return
        self._number += 1
        self._in_flight = batch
        tell(self._writer, Commit(self._number, items))

    def _committed(self, batch: WaitingRecords, settled: tuple[JobSettled, ...]) -> None:
        self._in_flight = None
        self._outbox.persisted(batch.last_event_id)
        self._outbox.from_memory = False
        self._publish()
        if settled and self._to is not None:
            tell(self._to.desk, JobsSettled(settled))
        if self._failures:
            self._failures, self._trouble = 0, None
            logger.info("store: available again; {} records written", len(batch.records))
            self._announce(StoreRecovered())
        self._answer_flushes()
        if self._is_due or self._flushes:
            self._commit()

    def _commit_failed(self, number: int, error: StoreError) -> None:
        if isinstance(error, StoreOwnedError):
            self._stand_down(error)
        elif self._in_flight is not None and number == self._number:
            self._failed(error)

    def _failed(self, error: StoreError) -> None:
        self._put_back()
        self._failures += 1
        if self._failures == 1:
            logger.warning(
                "store: the database does not answer; the supervisor continues from memory: {}", error
            )
        self._degraded(str(error))
        self._retry_later()
        self._answer_flushes()
        if self._flushes:
            self._commit()

    def _put_back(self) -> None:
        if self._in_flight is not None:
            self._batch.put_back(self._in_flight)
            self._in_flight = None

    def _retry_later(self) -> None:
        delay = RETRY_DELAYS_S[min(self._failures, len(RETRY_DELAYS_S)) - 1]
        self._runtime.timers.after(delay, self.actor_ref, RetryCommit(self._failures))

    def _answer_flushes(self) -> None:
        flushing, self._flushing = self._flushing, []
        self._publish()
        for each in flushing:
            left = () if self._stood_down else self._batch.items
            unsaved, failed = len(self._batch.records), self._failures > 0
            tell(each, Flushed(unsaved, self._stood_down, left, failed, self._number))

    def _hand_over(self, to: Receiver) -> None:
        self._put_back()
        self._stood_down = True
        tell(to, Flushed(len(self._batch.records), is_final=True, left=self._batch.items))

    def _stand_down(self, error: StoreOwnedError) -> None:
        """Stop writing for good: this supervisor does not know the state of the other one's workers."""
        if self._stood_down:
            return
        self._stood_down = True
        self._put_back()
        logger.warning("store: another supervisor uses it now; this one writes nothing more: {}", str(error))
        self._announce(StoodDown(str(error)))
        self._degraded(str(error))
        self._answer_flushes()

    # ── to other actors ────────────────────────────────────────────────────────────────────

    def _degraded(self, reason: str) -> None:
        """Notify the Supervisor each time, since it shows how many records wait; publish a reason once."""
        self._outbox.from_memory = True
        event = StoreDegraded(reason, len(self._batch.records))
        if self._to is not None:
            tell(self._to.supervisor, event)
        if reason != self._trouble:
            self._trouble = reason
            self.actor_ref.tell(event)

    def _announce(self, event: StoreRecovered | StoodDown) -> None:
        if self._to is not None:
            tell(self._to.supervisor, event)
        self.actor_ref.tell(event)

    def _publish(self) -> None:
        if self._to is None:
            return
        ready = self._outbox.ready()
        if ready:
            tell(self._to.broker, Publish(ready, self._outbox.persisted_id))
        self._limit_the_wait()

    def _limit_the_wait(self) -> None:
        """Set one timer that ends the wait for the store, for all waiting events."""
        since = self._outbox.oldest_wait
        if since is not None and self._overdue_timer is None:
            delay = max(0.0, since + SAVE_TIMEOUT_S - self._runtime.clock.monotonic())
            self._overdue_timer = self._runtime.timers.after(delay, self.actor_ref, PublishOverdue())

    def _stop_waiting(self) -> None:
        since = self._outbox.oldest_wait
        if since is not None and self._runtime.clock.monotonic() >= since + SAVE_TIMEOUT_S:
            self._outbox.from_memory = True
