"""Jobs that come after others, and batches, in memory: what the triggers of a database do."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from rekindle.actors.errors import RequestRefusedError, UnknownJobError
from rekindle.actors.facts.jobs import (
    OPEN,
    JobCrash,
    JobState,
    JobView,
    NewJob,
    ended_words,
    refused_cancellation,
    refused_retry,
)
from rekindle.actors.facts.queues import BatchAdded, BatchView

from ..memory_queues import MemoryQueues


class MemoryChains(MemoryQueues):
    """The part of `MemoryJobs` that is about jobs which wait for others."""

    def __init__(self, wall_ms: Callable[[], int]) -> None:
        super().__init__(wall_ms)
        self._jobs: dict[int, JobView] = {}
        self._after: dict[int, tuple[int, ...]] = {}
        """Which jobs each job came after that had not ended then."""
        self._crashes: list[JobCrash] = []
        self._batches: dict[int, BatchView] = {}
        self._batch_numbers = itertools.count(1)

    def retry(self, job_ids: Sequence[int]) -> None:
        """Put toxic, failed, cancelled or expired jobs back with their counts cleared, all or none."""
        for job in map(self.get, job_ids):
            if (refusal := refused_retry(job.id, job.state)) is not None:
                raise RequestRefusedError(refusal)
        if (refusal := self.refusal_by_predecessors(job_ids)) is not None:
            raise RequestRefusedError(refusal)
        for job_id in job_ids:
            waits = (self._jobs[job_id].waits_for or 0) > 0
            self._change(
                job_id,
                state=(JobState.WAITING if waits else JobState.PENDING).value,
                failed_by=None,
                crash_count=0,
                error_count=0,
                error=None,
                toxic_since_wall_ms=None,
                finished_at_wall_ms=None,
                not_before_wall_ms=self.wall_ms(),
                expires_at_wall_ms=None,
                cancel_requested_at_wall_ms=None,
                progress=None,
            )

    def cancel(self, job_ids: Sequence[int]) -> tuple[JobState, ...]:
        """Cancel pending jobs, and ask running ones to end, all or none; the state of each from now on."""
        for job in map(self.get, job_ids):
            if (refusal := refused_cancellation(job.id, job.state)) is not None:
                raise RequestRefusedError(refusal)
        return tuple(JobState(self._cancel(self.get(job_id)).state) for job_id in job_ids)

    def _cancel(self, job: JobView) -> JobView:
        now = self.wall_ms()
        since = now if job.cancel_requested_at_wall_ms is None else job.cancel_requested_at_wall_ms
        ended = {"state": JobState.CANCELLED.value, "finished_at_wall_ms": now}
        pending = job.state in (JobState.PENDING, JobState.WAITING)
        return self._change(job.id, cancel_requested_at_wall_ms=since, **(ended if pending else {}))

    def get(self, job_id: int) -> JobView:
        """One job, or `UnknownJobError`."""
        raise NotImplementedError

    def _change(self, job_id: int, **changes: object) -> JobView:
        raise NotImplementedError

    def predecessors(self, job: NewJob) -> tuple[int, ...]:
        """The jobs that a new one comes after and that have not ended."""
        for job_id in sorted(set(job.after)):
            if job_id not in self._jobs:
                raise UnknownJobError(job_id)
            state = self._jobs[job_id].state
            if state not in (*OPEN, JobState.DONE):
                raise RequestRefusedError(f"job {job_id} is {state}: no job can come after it")
        return tuple(each for each in sorted(set(job.after)) if self._jobs[each].state != JobState.DONE)

    def add_batch(
        self, queue: str, jobs: Sequence[NewJob], then: NewJob | None, then_queue: str
    ) -> BatchAdded:
        """Add jobs, and one that runs when all of them have ended."""
        number = next(self._batch_numbers)
        ids = tuple(self.add(queue, jobs))
        for job_id in ids:
            self._jobs[job_id] = replace(self._jobs[job_id], batch_id=number)
        (callback,) = self.add(then_queue, [then]) if then is not None else (None,)
        if callback is not None:
            waits = JobState.WAITING.value
            self._jobs[callback] = replace(self._jobs[callback], state=waits, waits_for=0)
        self._batches[number] = BatchView(
            id=number,
            total=len(ids),
            done=0,
            failed=0,
            callback_id=callback,
            created_at_wall_ms=self.wall_ms(),
        )
        return BatchAdded(number, ids, callback)

    def batches(self, batch: int | None = None, *, limit: int = 100) -> tuple[BatchView, ...]:
        """The batch with this number, or the latest ones."""
        chosen = [each for each in self._batches.values() if batch in (None, each.id)]
        return tuple(sorted(chosen, key=lambda each: -each.id)[:limit])

    def prune_batches(self, before_wall_ms: int) -> None:
        """Delete the batches that ended and whose last job is deleted."""
        for batch in tuple(self._batches.values()):
            is_over = batch.done + batch.failed >= batch.total
            is_old = batch.callback_id is None and batch.created_at_wall_ms < before_wall_ms
            if is_over and (is_old or ((batch.callback_id or 0) not in self._jobs and batch.callback_id)):
                del self._batches[batch.id]

    def refusal_by_predecessors(self, job_ids: Sequence[int]) -> str | None:
        """Why one of these jobs cannot be retried before another."""
        for job_id in job_ids:
            for before in self._after.get(job_id, ()):
                state = self._jobs[before].state if before in self._jobs else JobState.DONE
                if state not in (*OPEN, JobState.DONE) and before not in job_ids:
                    return f"job {job_id} comes after job {before}, which is {state}: retry that one first"
        return None

    def is_waited_for(self, job_id: int) -> bool:
        """Whether a job has not ended and others wait for it."""
        job = self._jobs[job_id]
        waiting = any(job_id in after for after in self._after.values())
        return job.state in OPEN and (waiting or job.batch_id is not None)

    def follow(self, before: str, job: JobView) -> None:
        """Do what follows from a job's new state."""
        was_open, is_open = before in OPEN, job.state in OPEN
        if was_open and not is_open:
            self._release(job) if job.state == JobState.DONE else self._cancel_later(job)
            self._count(job, 1)
        elif not was_open and is_open and before != JobState.DONE:
            self._count(job, -1)
            for later in [each for each in self._jobs.values() if each.failed_by == job.id]:
                self._jobs[later.id] = replace(
                    later, state=JobState.WAITING.value, failed_by=None, error=None, finished_at_wall_ms=None
                )
                self._count(later, -1)

    def _release(self, done: JobView) -> None:
        for job_id, after in self._after.items():
            if done.id in after and job_id in self._jobs:
                job = self._jobs[job_id]
                left = (job.waits_for or 0) - 1
                is_free = left == 0 and job.state == JobState.WAITING
                state = JobState.PENDING.value if is_free else job.state
                self._jobs[job_id] = replace(job, waits_for=left, state=state)

    def _cancel_later(self, failed: JobView) -> None:
        later, todo = set[int](), [failed.id]
        while todo:
            before = todo.pop()
            new = {each for each, after in self._after.items() if before in after} - later
            later |= new
            todo += new
        for job_id in sorted(later & self._jobs.keys()):
            job = self._jobs[job_id]
            if job.state == JobState.WAITING:
                reason = f"job {failed.id}, which it comes after, {ended_words(failed.state)}"
                changes = {"error": reason, "finished_at_wall_ms": failed.finished_at_wall_ms}
                cancelled = replace(job, state=JobState.CANCELLED.value, failed_by=failed.id, **changes)
                self._jobs[job_id] = cancelled
                self._count(cancelled, 1)

    def _count(self, job: JobView, change: int) -> None:
        batch = self._batches.get(job.batch_id or 0)
        if batch is None:
            return
        if change > 0 and job.state == JobState.DONE:
            batch = replace(batch, done=batch.done + 1)
        else:
            batch = replace(batch, failed=batch.failed + change)
        self._batches[batch.id] = batch
        callback = self._jobs.get(batch.callback_id or 0)
        if batch.done + batch.failed == batch.total and callback and callback.state == JobState.WAITING:
            counts = (
                f'{{"id":{batch.id}, "total":{batch.total}, "done":{batch.done}, "failed":{batch.failed}}}'
            )
            self._jobs[callback.id] = replace(callback, state=JobState.PENDING.value, batch_counts=counts)
