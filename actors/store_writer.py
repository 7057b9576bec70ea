"""The store writer: carries out the commits of the persistence actor.

A commit blocks, so this actor has a lane (a thread) of its own, and the persistence actor never
waits for the store. It writes one batch at a time and reports `Committed` or `CommitFailed`. The
Supervisor gets `BatchCommitted` directly, before that: a restart waits for nothing but the commit of
its death. Between commits the writer deletes rows that are older than the retention allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from loguru import logger

from .errors import RecordRefusedError, StoreError, StoreOwnedError, StoreUnavailableError
from .facts.commit_times import CommitTimes
from .facts.generations import highest_mark
from .facts.jobs import JobSettled
from .facts.records import DeathRecord, EventRecord, Record
from .messages import RecordSetAside
from .messages.event_json import event_type
from .messages.internal.to_monitor import Attend
from .messages.internal.to_persistence import (
    Commit,
    CommitFailed,
    Committed,
    PruneDue,
    ReportCommit,
    WriterMessage,
)
from .messages.internal.to_supervisor import BatchCommitted
from .ports import Receiver, Runtime, Store, Timer
from .runtime.resilient_actor import ResilientActor, tell
from .spec.policies.retention_policy import Retention

PRUNE_AFTER_S = 600.0
"""How long after a commit old rows are deleted."""

PRUNE_AGAIN_S = 0.05
"""The pause between two chunks, in which other processes can use the database."""

EARLIEST_WALL_MS = 1_577_836_800_000
"""The year 2020: a clock that shows less has not been set yet."""


MOST_CONTENT = 4000
"""How many characters of a record that cannot be written are logged and published."""

SET_ASIDE = event_type(RecordSetAside)


class StoreWriter(ResilientActor):
    """Writes the batches of the persistence actor."""

    lane: ClassVar[str] = "store"

    def __init__(
        self,
        *,
        runtime: Runtime,
        store: Store,
        persistence: Receiver,
        retention: Retention,
        times: CommitTimes,
    ) -> None:
        super().__init__(persistence=persistence)
        self._runtime = runtime
        self._store = store
        self._retention = retention
        self._times = times
        self._supervisor: Receiver | None = None
        self._result: Committed | CommitFailed | None = None
        """Of the latest commit."""
        self._prune_timer: Timer | None = None
        self._began = (runtime.clock.monotonic(), runtime.clock.wall_ms())

    def handle(self, message: WriterMessage) -> None:
        """Write a batch, or delete old rows."""
        match message:
            case Commit():
                self._commit(message)
            case ReportCommit():
                tell(self.persistence, self._result)
            case PruneDue():
                self._prune()
            case Attend(supervisor=supervisor):
                self._supervisor = supervisor
            case unknown:
                self.unexpected(unknown)

    def dropped(self, message: WriterMessage) -> None:
        """Report a commit that raised twice as failed: the persistence actor tries it again later."""
        if isinstance(message, Commit):
            error = StoreUnavailableError("the store raised an unexpected error; see the log")
            self._report(CommitFailed(message.number, error))

    def _commit(self, commit: Commit) -> None:
        if self._result is not None and self._result.number == commit.number:
            tell(self.persistence, self._result)  # already written; this actor raised afterwards
            return
        begun = self._runtime.clock.monotonic()
        try:
            settled = self._write(commit.records)
        except StoreError as error:
            self._keep_mark(commit.records)
            self._report(CommitFailed(commit.number, error))
            return
        self._times.took(self._runtime.clock.monotonic() - begun)
        deaths = tuple((r.component_id, r.generation) for r in commit.records if isinstance(r, DeathRecord))
        if deaths:
            tell(self._supervisor, BatchCommitted(deaths))
        self._report(Committed(commit.number, settled))
        self._prune_later(PRUNE_AFTER_S)

    def _write(self, records: Sequence[Record]) -> tuple[JobSettled, ...]:
        """Write the records, in one transaction if that is possible.

        A record that the store cannot write, whenever it is tried, would block all later ones forever.
        So the batch is divided until that record is found; it is set aside, and all others are written.
        """
        try:
            return self._store.commit(records)
        except Exception as error:
            if isinstance(error, StoreError) and not isinstance(error, RecordRefusedError):
                raise
            if len(records) > 1:
                half = len(records) // 2
                return *self._write(records[:half]), *self._write(records[half:])
            if not records:
                raise
            self._store.commit(())  # raises if the cause is the store and not the record
            set_aside(records[0], error, self.persistence)
            return ()

    def _keep_mark(self, records: Sequence[Record]) -> None:
        """Numbers are used meanwhile: a run after this one must not use them again."""
        if mark := highest_mark(records):
            self._store.keep_mark(mark)

    def _report(self, result: Committed | CommitFailed) -> None:
        self._result = result
        tell(self.persistence, result)

    def _prune_later(self, delay_s: float) -> None:
        """Set the timer only after a commit: a supervisor that writes nothing does not wake up."""
        if self._prune_timer is None:
            self._prune_timer = self._runtime.timers.after(delay_s, self.actor_ref, PruneDue())

    def _prune(self) -> None:
        self._prune_timer = None
        if isinstance(self._result, CommitFailed):
            return  # the next commit that succeeds sets the timer
        try:
            more = self._store.prune(self._retention, self._plausible_wall_ms())
        except StoreOwnedError as error:
            tell(self.persistence, CommitFailed(0, error))
            return
        except StoreError as error:
            logger.warning("store: old rows could not be deleted: {}", str(error))
            return
        if more:
            self._prune_later(PRUNE_AGAIN_S)

    def _plausible_wall_ms(self) -> int:
        """The wall-clock time; if the clock was set forward, the time that it would show otherwise.

        A clock that is set forward must not make rows old. A machine without a clock battery starts
        in 1970: there the later time is correct.
        """
        now_ms, (began, began_ms) = self._runtime.clock.wall_ms(), self._began
        if began_ms < EARLIEST_WALL_MS:
            return now_ms
        return min(now_ms, began_ms + round((self._runtime.clock.monotonic() - began) * 1000))


def set_aside(item: object, error: Exception, persistence: Receiver | None) -> None:
    """Log a record or an event that cannot be written, and publish it as evidence."""
    kind, content, why = type(item).__name__, _as_text(item), _as_text(error)
    logger.opt(exception=error).error("store: a record cannot be written and is set aside: {}", content)
    if not (isinstance(item, RecordSetAside) or (isinstance(item, EventRecord) and item.type == SET_ASIDE)):
        tell(persistence, RecordSetAside(kind, why, content))


def _as_text(value: object) -> str:
    """The value for people. It may contain anything, also what has no text."""
    try:
        return repr(value)[:MOST_CONTENT]
    except Exception as error:  # noqa: BLE001
        return f"{type(value).__name__}, whose content cannot be shown: {type(error).__name__}"
