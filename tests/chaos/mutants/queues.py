"""Mistakes with time limits, chains, batches and limits of queues."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from rekindle.actors.facts.jobs import JobState, JobView, NewJob
from rekindle.actors.rules import overdue_jobs
from rekindle.actors.rules.job_verdicts import verdict_if_ended_for_it
from rekindle.actors.rules.overdue_jobs import OverdueJobs
from rekindle.persistence.jobs import memory_jobs
from rekindle.persistence.jobs.chains.memory_chains import MemoryChains
from rekindle.persistence.jobs.memory_jobs import MemoryJobs
from rekindle.persistence.jobs.memory_queues import MemoryQueues

# ── time ─────────────────────────────────────────────────────────────────────────────────


def never_ends_a_job_that_takes_too_long(patch: pytest.MonkeyPatch) -> None:
    """Only cancelled jobs are ended with their process."""
    right = OverdueJobs.judge

    def judge(self: OverdueJobs, jobs: Any, *args: Any) -> Any:
        return right(self, [replace(job, timeout_ms=None) for job in jobs], *args)

    patch.setattr(OverdueJobs, "judge", judge)


def ends_a_job_before_its_time(patch: pytest.MonkeyPatch) -> None:
    """Every execution may take as long as the grace period, and no longer."""
    patch.setattr(overdue_jobs, "_left_s", lambda _job, _now: 0.0)


def retries_what_took_too_long_at_once(patch: pytest.MonkeyPatch) -> None:
    """A job that took too long is put back as if its worker had been stopped."""

    def verdict(job: Any, end: Any, crashes: int) -> Any:
        found = verdict_if_ended_for_it(job, end, crashes)
        return None if found is not None and found.timed_out else found

    patch.setattr(memory_jobs, "verdict_if_ended_for_it", verdict)


def starts_jobs_that_have_expired(patch: pytest.MonkeyPatch) -> None:
    """The time by which a job must have begun is stored and shown, and nothing more."""
    patch.setattr(memory_jobs, "has_expired", lambda _job, _now: False)


def lets_a_job_expire_that_has_begun(patch: pytest.MonkeyPatch) -> None:
    """A retry is given up because the first execution would be too late."""
    patch.setattr(
        memory_jobs,
        "has_expired",
        lambda job, now: job.state == JobState.PENDING and (job.expires_at_wall_ms or now + 1) <= now,
    )


# ── chains and batches ───────────────────────────────────────────────────────────────────


def starts_a_job_before_those_it_comes_after(patch: pytest.MonkeyPatch) -> None:
    """No job waits for another."""
    patch.setattr(MemoryChains, "predecessors", lambda _self, _job: ())


def waits_for_one_job_of_several(patch: pytest.MonkeyPatch) -> None:
    """A job that comes after several starts when the first of them is done."""
    right = MemoryChains.predecessors
    patch.setattr(MemoryChains, "predecessors", lambda self, job: right(self, job)[:1])


def never_starts_what_comes_after_a_job(patch: pytest.MonkeyPatch) -> None:
    """The end of a job releases nothing."""
    patch.setattr(MemoryChains, "_release", lambda _self, _done: None)


def starts_what_comes_after_a_failure(patch: pytest.MonkeyPatch) -> None:
    """A job that failed counts as done for those after it."""
    patch.setattr(MemoryChains, "_cancel_later", MemoryChains._release)


def leaves_what_comes_after_a_failure_waiting(patch: pytest.MonkeyPatch) -> None:
    """A job whose predecessor failed waits forever."""
    patch.setattr(MemoryChains, "_cancel_later", lambda _self, _failed: None)


def cancels_only_the_next_job_of_a_chain(patch: pytest.MonkeyPatch) -> None:
    """The third job of a chain whose first one failed waits forever."""
    right = MemoryChains._cancel_later

    def cancel(self: MemoryChains, failed: JobView) -> None:
        whole = self._after
        self._after = {job: after for job, after in whole.items() if failed.id in after}
        right(self, failed)
        self._after = whole

    patch.setattr(MemoryChains, "_cancel_later", cancel)


def ends_a_batch_with_its_first_job(patch: pytest.MonkeyPatch) -> None:
    """The job after a batch does not wait for all of it."""
    right = MemoryChains.add_batch

    def add(self: MemoryChains, *args: Any) -> Any:
        added = right(self, *args)
        self._batches[added.id] = replace(self._batches[added.id], total=1)
        return added

    patch.setattr(MemoryChains, "add_batch", add)


def waits_for_ever_for_a_failed_job_of_a_batch(patch: pytest.MonkeyPatch) -> None:
    """Only jobs that are done count."""
    right = MemoryChains._count

    def count(self: MemoryChains, job: JobView, change: int) -> None:
        if job.state == JobState.DONE:
            right(self, job, change)

    patch.setattr(MemoryChains, "_count", count)


def forgets_cancelled_jobs_of_a_batch(patch: pytest.MonkeyPatch) -> None:
    """The jobs that are cancelled with the one before them are not counted."""
    right = MemoryChains._count

    def count(self: MemoryChains, job: JobView, change: int) -> None:
        if job.failed_by is None:
            right(self, job, change)

    patch.setattr(MemoryChains, "_count", count)


def runs_the_job_after_a_batch_at_once(patch: pytest.MonkeyPatch) -> None:
    """It is a job like the others."""
    right = MemoryChains.add_batch

    def add(self: MemoryChains, queue: str, jobs: Any, then: NewJob | None, then_queue: str) -> Any:
        added = right(self, queue, jobs, then, then_queue)
        if added.callback_id is not None:
            self._jobs[added.callback_id] = replace(
                self._jobs[added.callback_id], state=JobState.PENDING.value
            )
        return added

    patch.setattr(MemoryChains, "add_batch", add)


# ── limits ───────────────────────────────────────────────────────────────────────────────


def _without(patch: pytest.MonkeyPatch, **lifted: None) -> None:
    right = MemoryQueues.set_limits

    def set_limits(self: MemoryQueues, limits: Any) -> None:
        right(self, [replace(each, **lifted) for each in limits])

    patch.setattr(MemoryQueues, "set_limits", set_limits)


def runs_more_jobs_of_a_queue_than_it_allows(patch: pytest.MonkeyPatch) -> None:
    """How many run at a time is not counted."""
    _without(patch, concurrency=None)


def starts_more_jobs_of_a_queue_than_it_allows(patch: pytest.MonkeyPatch) -> None:
    """How many start in a time is not counted."""
    _without(patch, rate=None)


def runs_more_jobs_of_a_key_than_it_allows(patch: pytest.MonkeyPatch) -> None:
    """The same for one key."""
    _without(patch, key_concurrency=None)


def starts_more_jobs_of_a_key_than_it_allows(patch: pytest.MonkeyPatch) -> None:
    """The same for one key."""
    _without(patch, key_rate=None)


def counts_a_limit_for_each_worker(patch: pytest.MonkeyPatch) -> None:
    """A limit holds for the jobs of one worker, not over all of them."""
    right = MemoryJobs.claim

    def claim(self: MemoryJobs, queue: str, worker: str, *args: Any, **kwargs: Any) -> Any:
        held = self.is_held_back

        def of_worker(queue: str, key: str | None, _running: Any) -> bool:
            mine = [
                job.key
                for job in self._jobs.values()
                if (job.queue, job.state, job.claimed_by) == (queue, JobState.RUNNING, worker)
            ]
            return held(queue, key, mine)

        vars(self)["is_held_back"] = of_worker
        try:
            return right(self, queue, worker, *args, **kwargs)
        finally:
            del vars(self)["is_held_back"]

    patch.setattr(MemoryJobs, "claim", claim)


def holds_everything_back_behind_a_key(patch: pytest.MonkeyPatch) -> None:
    """A job whose key is at its limit stands in the way of all others."""
    right = MemoryJobs._due

    def due(self: MemoryJobs, queue: str) -> list[JobView]:
        found = right(self, queue)
        waiting = [job for job in self._jobs.values() if (job.queue, job.state) == (queue, JobState.PENDING)]
        return [job for job in found if job.key is not None] or (
            [] if any(job.key is not None for job in waiting) else found
        )

    patch.setattr(MemoryJobs, "_due", due)


def holds_a_key_back_when_the_clock_was_set_back(patch: pytest.MonkeyPatch) -> None:
    """A rate counts on from a time that is far in the future now."""
    patch.setattr(
        MemoryQueues, "_full_at", lambda self, queue, key, _rate: self._full_at_ms.get((queue, key), 0.0)
    )
