"""The queues of a run in virtual time: moves on them, and what is recorded of their jobs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from rekindle.worker.jobs.claims import Claimant, Claims, Ending

from ...facts.jobs import OPEN, JobState, JobView, NewJob
from ...facts.queues import BatchAdded, QueueLimits, QueuePause, Rate
from ..scenarios.history import AnyEntry
from ..scenarios.jobs.job_entries import (
    JobAdded,
    JobAnswered,
    JobCancelAsked,
    JobExpired,
    JobKept,
    QueueLimited,
    QueuePauseBegan,
    QueuePauseEnded,
)
from ..scenarios.jobs.job_moves import (
    CancelJob,
    Enqueue,
    JobFate,
    LimitQueue,
    PauseQueue,
    QueueMove,
    ResumeQueue,
)
from ..simulation_runtime import VirtualClock

if TYPE_CHECKING:
    from .scripted_jobs import JobServer

IDLE_S = 5.0
"""How often a process that waits for a job looks whether there is one."""


@runtime_checkable
class QueuesInReach(Protocol):
    """The jobs of a store whose queues a scripted process can reach: it has no connection of its own."""

    wall_ms: Callable[[], int]
    """The clock, which the run sets."""

    expired: Callable[[int], None]
    """Called with a job that has expired; the run sets it."""

    def add(self, queue: str, jobs: Sequence[NewJob]) -> tuple[int, ...]: ...
    def add_batch(
        self, queue: str, jobs: Sequence[NewJob], then: NewJob | None, then_queue: str
    ) -> BatchAdded: ...
    def set_limits(self, limits: Sequence[QueueLimits]) -> None: ...
    def limits(self) -> tuple[QueueLimits, ...]: ...
    def claims(self, claimant: Claimant) -> Claims: ...
    def find(self, *, limit: int) -> tuple[JobView, ...]: ...
    def cancel(self, job_ids: Sequence[int]) -> tuple[JobState, ...]: ...
    def pause(self, queue: str, *, for_s: float | None = None) -> QueuePause: ...
    def resume(self, queue: str) -> bool: ...


class ScriptedQueues:
    """The queues of one run, over all lives of the supervisor."""

    def __init__(
        self,
        jobs: QueuesInReach,
        clock: VirtualClock,
        note: Callable[[AnyEntry], None],
        at: Callable[[float, Callable[[], None]], None],
    ) -> None:
        """Serve jobs on the clock of the run; `at` does something at a time of the scenario."""
        jobs.wall_ms, jobs.expired = clock.wall_ms, self._expired
        self.jobs = jobs
        self.clock = clock
        self.note = note
        self.at = at
        self.run = ""
        """The run of the present supervisor."""
        self.is_away = False
        """The database is not available."""
        self.is_calm = False
        """The faults have ended: every execution that begins now finishes."""
        self._idle: dict[JobServer, None] = {}
        self._is_exchanging = False
        self._withheld: list[JobExpired] = []
        """What expired during an exchange, whose ending is recorded first."""

    def perform(self, move: QueueMove) -> None:
        """Make a move on a queue; on one that the database keeps, only while it answers."""
        match move:
            case Enqueue():
                self.enqueue(move)
            case CancelJob(queue=queue, which=which):
                self.cancel(queue, which)
            case PauseQueue(queue=queue, for_s=for_s):
                self.pause(queue, for_s)
            case ResumeQueue(queue=queue):
                self.resume(queue)
            case LimitQueue():
                self.limit(move)

    def enqueue(self, move: Enqueue) -> None:
        """Put the jobs of a move into their queue."""
        now = self.clock.wall_ms()
        payload = json.dumps({"takes_s": move.takes_s, "does": move.does, "times": move.times})
        newest = self._open(move.queue)[-move.after :] if move.after else ()
        new = NewJob(
            payload=payload,
            priority=move.priority,
            not_before_wall_ms=now + round(move.in_s * 1000),
            timeout_ms=None if move.timeout_s is None else round(move.timeout_s * 1000),
            expires_at_wall_ms=None if move.expires_s is None else now + round(move.expires_s * 1000),
            key=move.key,
            after=tuple(newest),
        )
        if move.batch:
            self._add_batch(move.queue, [new] * move.jobs)
        else:
            for job in self.jobs.add(move.queue, [new] * move.jobs):
                self._note_added(job, move.queue, new)
        self.wake()

    def _add_batch(self, queue: str, jobs: list[NewJob]) -> None:
        then = NewJob(payload=json.dumps({"takes_s": 0.5, "does": JobFate.FINISHES, "times": 0}))
        added = self.jobs.add_batch(queue, jobs, then, queue)
        for job, new in zip(added.job_ids, jobs, strict=True):
            self._note_added(job, queue, new, batch=added.id)
        assert added.callback_id is not None
        self._note_added(added.callback_id, queue, then, ends_batch=added.id)

    def _note_added(
        self, job: int, queue: str, new: NewJob, *, batch: int | None = None, ends_batch: int | None = None
    ) -> None:
        due = self.clock.wall_ms() if new.not_before_wall_ms is None else new.not_before_wall_ms
        limits = new.key, new.timeout_ms, new.expires_at_wall_ms
        self.note(
            JobAdded(self.clock.now, job, queue, new.priority, due, *limits, new.after, batch, ends_batch)
        )

    def limit(self, move: LimitQueue) -> None:
        """Limit a queue; the limits of the others stay."""
        per_ms = round(move.per_s * 1000)
        limits = QueueLimits(
            queue=move.queue,
            concurrency=move.concurrency,
            rate=None if move.rate is None else Rate(move.rate, per_ms),
            key_concurrency=move.key_concurrency,
            key_rate=None if move.key_rate is None else Rate(move.key_rate, per_ms),
        )
        others = [each for each in self.jobs.limits() if each.queue != move.queue]
        self.jobs.set_limits([*others, limits])
        limited = move.concurrency, move.rate, move.key_concurrency, move.key_rate
        self.note(QueueLimited(self.clock.now, move.queue, *limited, per_ms))
        self.wake()

    def _open(self, queue: str) -> list[int]:
        """The jobs of a queue that have not ended, oldest first."""
        found = self.jobs.find(limit=1_000_000)
        return sorted(job.id for job in found if job.queue == queue and job.state in OPEN)

    def cancel(self, queue: str, which: int) -> None:
        """Cancel a job that has not ended, if there is one and the database answers."""
        jobs = self._open(queue)
        if jobs and not self.is_away:
            job = jobs[which % len(jobs)]
            (state,) = self.jobs.cancel([job])
            self.note(JobCancelAsked(self.clock.now, job, state.value))

    def pause(self, queue: str, for_s: float | None) -> None:
        """Have no job of the queue started, for a time."""
        paused = self.jobs.pause(queue, for_s=for_s)
        self.note(QueuePauseBegan(self.clock.now, queue, paused.until_wall_ms))

    def resume(self, queue: str) -> None:
        """End the pause of the queue."""
        self.jobs.resume(queue)
        self.note(QueuePauseEnded(self.clock.now, queue))
        self.wake()

    def wake(self) -> None:
        """There may be jobs: the processes that wait for one look."""
        waiting, self._idle = self._idle, {}
        for server in waiting:
            server.process.later(0.0, server.look)

    def wait(self, server: JobServer) -> None:
        """This process waits for a job."""
        if server not in self._idle:
            self._idle[server] = None
            server.process.later(IDLE_S, server.look)

    @contextmanager
    def one_exchange(self) -> Iterator[None]:
        """Record what expires only at the end: after the ending that the same transaction recorded."""
        self._is_exchanging = True
        try:
            yield
        finally:
            self._is_exchanging = False
            for entry in self._withheld:
                self.note(entry)
            self._withheld.clear()

    def _expired(self, job: int) -> None:
        entry = JobExpired(self.clock.now, job, self.clock.wall_ms())
        self._withheld.append(entry) if self._is_exchanging else self.note(entry)

    def answered(self, claimant: Claimant, ending: Ending, accepted: bool, raised_ms: int = 0) -> None:
        """Record that the end of an execution reached the store."""
        job, attempt = ending.claim.execution
        who = claimant.worker, claimant.generation
        self.note(JobAnswered(self.clock.now, *who, job, attempt, ending.state, accepted, raised_ms))

    def count(self) -> None:
        """Record what the store has."""
        for job in sorted(self.jobs.find(limit=1_000_000), key=lambda each: each.id):
            counts = job.attempts, job.crash_count
            self.note(JobKept(self.clock.now, job.id, job.state, *counts, job.checkpoint, job.batch_counts))
