"""Mistakes with jobs: claims, results, blame and releases."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from msgspec.structs import replace

from rekindle.actors import supervision
from rekindle.actors.facts.jobs import JobState, JobView, Verdict
from rekindle.actors.facts.records import ClaimsReleased, FormerClaimsReleased
from rekindle.actors.job_desk import JobDesk
from rekindle.actors.rules.job_verdicts import verdict_after_crash
from rekindle.actors.supervision import on_death
from rekindle.actors.supervision.after_death.aftermath import claims_after_death
from rekindle.actors.system import assembly
from rekindle.persistence import MemoryStore
from rekindle.persistence.jobs import memory_jobs
from rekindle.persistence.jobs.memory_claims import MemoryClaims
from rekindle.persistence.jobs.memory_jobs import MemoryJobs
from rekindle.persistence.jobs.memory_queues import MemoryQueues
from rekindle.worker.jobs.claims import ClaimRequest
from rekindle.worker.jobs.held_jobs import HeldJobs
from rekindle.worker.jobs.job_settings import retry_delay


def accepts_results_of_released_claims(patch: pytest.MonkeyPatch) -> None:
    """The result of a process that was given up is stored, whatever has become of the job since."""

    def end(self: MemoryJobs, job_id: int, _attempt: int, **changes: object) -> bool:
        self._change(job_id, **changes)
        return True

    patch.setattr(MemoryJobs, "end", end)


def accepts_results_for_another_attempt(patch: pytest.MonkeyPatch) -> None:
    """The fence compares the state of the job, not the attempt."""
    right = MemoryJobs.end

    def end(self: MemoryJobs, job_id: int, _attempt: int, **changes: object) -> bool:
        return right(self, job_id, self.get(job_id).attempts, **changes)

    patch.setattr(MemoryJobs, "end", end)


def accepts_checkpoints_of_released_claims(patch: pytest.MonkeyPatch) -> None:
    """A process that was given up writes over what the next one has stored."""
    patch.setattr(
        MemoryClaims, "save", lambda self, claim, checkpoint: self._jobs.note(claim.id, checkpoint=checkpoint)
    )


def begins_without_the_checkpoint(patch: pytest.MonkeyPatch) -> None:
    """Every execution begins from the start."""
    right = MemoryClaims._claim_on
    patch.setattr(
        MemoryClaims,
        "_claim_on",
        lambda self, job: dataclasses.replace(right(self, job), checkpoint=None),
    )


def forgets_the_checkpoint_of_a_crash(patch: pytest.MonkeyPatch) -> None:
    """The release of a claim clears what its process had stored."""
    right = MemoryJobs._settle

    def settle(self: MemoryJobs, job: JobView, end: ClaimsReleased) -> Any:
        settled = right(self, job, end)
        self._change(job.id, checkpoint=None)
        return settled

    patch.setattr(MemoryJobs, "_settle", settle)


def keeps_the_checkpoint_of_what_is_done(patch: pytest.MonkeyPatch) -> None:
    """A result does not clear it."""
    right = MemoryJobs.end

    def end(self: MemoryJobs, job_id: int, attempt: int, **changes: object) -> bool:
        return right(self, job_id, attempt, **{**changes, "checkpoint": self.get(job_id).checkpoint})

    patch.setattr(MemoryJobs, "end", end)


def starts_jobs_of_a_paused_queue(patch: pytest.MonkeyPatch) -> None:
    """A pause is stored and shown, and nothing more."""
    patch.setattr(MemoryQueues, "is_paused", lambda _self, _queue: False)


def starts_jobs_that_were_cancelled(patch: pytest.MonkeyPatch) -> None:
    """A job that has not begun stays in its queue when it is cancelled."""
    right = MemoryJobs._cancel
    patch.setattr(
        MemoryJobs, "_cancel", lambda self, job: job if job.state == "pending" else right(self, job)
    )


def takes_the_result_of_a_cancelled_job(patch: pytest.MonkeyPatch) -> None:
    """An execution that was to end is done instead."""
    right = MemoryJobs.end

    def end(self: MemoryJobs, job_id: int, attempt: int, **changes: object) -> bool:
        self._change(job_id, cancel_requested_at_wall_ms=None)
        return right(self, job_id, attempt, **changes)

    patch.setattr(MemoryJobs, "end", end)


def requeues_a_cancelled_job(patch: pytest.MonkeyPatch) -> None:
    """It comes back when its worker dies."""
    patch.setattr(memory_jobs, "verdict_if_ended_for_it", lambda _job, _end, _crashes: None)


def blames_a_cancelled_job(patch: pytest.MonkeyPatch) -> None:
    """The death of a worker whose job was cancelled counts against that job."""
    right = MemoryJobs._as_recorded

    def as_recorded(self: MemoryJobs, job: JobView, end: ClaimsReleased, deaths: Any) -> ClaimsReleased:
        return right(self, replace(job, cancel_requested_at_wall_ms=None), end, deaths)

    patch.setattr(MemoryJobs, "_as_recorded", as_recorded)


def stores_checkpoints_of_cancelled_jobs(patch: pytest.MonkeyPatch) -> None:
    """An execution that was to end continues to store how far it came."""

    def note(self: MemoryJobs, job_id: int, **notes: object) -> bool:
        self._change(job_id, **notes)
        return True

    patch.setattr(MemoryJobs, "note", note)


def counts_a_crash_twice(patch: pytest.MonkeyPatch) -> None:
    """A job is blamed twice for one death."""

    def twice(crash_count: int, **kwargs: Any) -> Verdict:
        once = verdict_after_crash(crash_count, **kwargs)
        return (
            Verdict(once.state, once.crash_count + 1, once.error) if once.crash_count > crash_count else once
        )

    patch.setattr(memory_jobs, "verdict_after_crash", twice)


def never_blames_a_job(patch: pytest.MonkeyPatch) -> None:
    """A job may kill its workers forever."""
    patch.setattr(ClaimsReleased, "may_blame", lambda _self, _job, _attempt: False)


def blames_claims_that_were_not_begun(patch: pytest.MonkeyPatch) -> None:
    """A job is blamed for the death of a worker that had only claimed it."""
    patch.setattr(ClaimsReleased, "may_blame", lambda self, _job, _attempt: self.counted)


def blames_without_a_record(patch: pytest.MonkeyPatch) -> None:
    """A job is blamed for ends that no history has, such as the end of its supervisor."""
    patch.setattr(MemoryJobs, "_as_recorded", lambda _self, _job, end, _deaths: end)


def blames_for_the_loss_of_the_supervisor(patch: pytest.MonkeyPatch) -> None:
    """What ended with its supervisor is recorded before the claims are released, and counts as a crash."""
    right = MemoryStore.commit

    def commit(self: MemoryStore, records: Any) -> Any:
        late = [each for each in records if isinstance(each, FormerClaimsReleased)]
        return right(self, [*(each for each in records if each not in late), *late])

    patch.setattr(MemoryStore, "commit", commit)
    patch.setattr(memory_jobs, "BLAMELESS", frozenset())


def blames_for_a_stop(patch: pytest.MonkeyPatch) -> None:
    """The job of a worker that an operator stopped counts as crashed."""
    right = JobDesk._release

    def release(self: JobDesk, end: Any) -> None:
        right(self, replace(end, counted=True))

    patch.setattr(JobDesk, "_release", release)
    patch.setattr(MemoryJobs, "_as_recorded", lambda _self, _job, end, _deaths: end)


def is_toxic_one_crash_early(patch: pytest.MonkeyPatch) -> None:
    """The last retry is missing."""

    def early(crash_count: int, *, retries: int | None, **kwargs: Any) -> Verdict:
        return verdict_after_crash(crash_count, retries=None if retries is None else retries - 1, **kwargs)

    patch.setattr(memory_jobs, "verdict_after_crash", early)


def is_toxic_one_crash_late(patch: pytest.MonkeyPatch) -> None:
    """One retry too many."""

    def late(crash_count: int, *, retries: int | None, **kwargs: Any) -> Verdict:
        return verdict_after_crash(crash_count, retries=None if retries is None else retries + 1, **kwargs)

    patch.setattr(memory_jobs, "verdict_after_crash", late)


def convicts_what_died_alone_at_once(patch: pytest.MonkeyPatch) -> None:
    """A suspect that is killed from outside while it runs alone is toxic, whatever it has left."""

    def strict(crash_count: int, *, alone: bool, retries: int | None, **kwargs: Any) -> Verdict:
        return verdict_after_crash(crash_count, alone=alone, retries=0 if alone else retries, **kwargs)

    patch.setattr(memory_jobs, "verdict_after_crash", strict)


def loses_the_job_of_a_dead_worker(patch: pytest.MonkeyPatch) -> None:
    """A job is deleted with the claim on it."""
    right = MemoryJobs._settle

    def settle(self: MemoryJobs, job: JobView, end: ClaimsReleased) -> Any:
        settled = right(self, job, end)
        if settled.state is JobState.PENDING:
            del self._jobs[job.id]
        return settled

    patch.setattr(MemoryJobs, "_settle", settle)


def never_releases_a_claim(patch: pytest.MonkeyPatch) -> None:
    """The job of a dead worker stays taken."""
    patch.setattr(JobDesk, "_release", lambda _self, _end: None)


def keeps_the_claims_of_what_was_stopped(patch: pytest.MonkeyPatch) -> None:
    """Only a death releases the claims."""
    right = JobDesk._release

    def release(self: JobDesk, end: Any) -> None:
        if end.counted:
            right(self, end)

    patch.setattr(JobDesk, "_release", release)


def keeps_the_claims_of_a_former_run(patch: pytest.MonkeyPatch) -> None:
    """A new supervisor leaves the jobs to processes that are gone."""
    right = assembly._former_claims
    patch.setattr(assembly, "_former_claims", lambda *args: right(*args).of("no such worker", 0))


def releases_a_claim_before_the_end(patch: pytest.MonkeyPatch) -> None:
    """The job of a hung worker is given to another one while the first may still be at work."""
    right = on_death.died

    def died(worker: Any, death: Any, world: Any) -> Any:
        step = right(worker, death, world)
        early = claims_after_death(worker, death) if step.worker.open_death is not None else ()
        return replace(step, effects=(*step.effects, *early))

    patch.setattr(supervision, "died", died)


def claims_a_job_twice(patch: pytest.MonkeyPatch) -> None:
    """A job that another worker executes may be claimed."""
    right = MemoryJobs._due

    def due(self: MemoryJobs, queue: str) -> list[JobView]:
        running = [job for job in self._jobs.values() if (job.queue, job.state) == (queue, JobState.RUNNING)]
        return right(self, queue) or running

    patch.setattr(MemoryJobs, "_due", due)


def claims_the_newest_job_first(patch: pytest.MonkeyPatch) -> None:
    """The order of a queue is reversed."""
    right = MemoryJobs._due
    patch.setattr(MemoryJobs, "_due", lambda self, queue: right(self, queue)[-1:])


def claims_a_job_before_it_is_due(patch: pytest.MonkeyPatch) -> None:
    """A retry does not wait."""

    def due(self: MemoryJobs, queue: str) -> list[JobView]:
        return [job for job in self._jobs.values() if (job.queue, job.state) == (queue, JobState.PENDING)]

    patch.setattr(MemoryJobs, "_due", due)


def does_not_isolate_suspects(patch: pytest.MonkeyPatch) -> None:
    """A job on which a worker died runs beside others."""
    patch.setattr(HeldJobs, "_request", lambda self, _others: ClaimRequest(self._queues))


def takes_jobs_beside_a_suspect(patch: pytest.MonkeyPatch) -> None:
    """A suspect begins alone and gets company."""

    def request(self: HeldJobs, others: list[Any]) -> ClaimRequest:
        return ClaimRequest(self._queues, free=not others, isolate=self._isolate)

    patch.setattr(HeldJobs, "_request", request)


def retries_errors_without_growing_delays(patch: pytest.MonkeyPatch) -> None:
    """The second retry after an exception comes as soon as the first."""

    def delay(settings: Any, errors: int, max_retries: int | None) -> float | None:
        return None if retry_delay(settings, errors, max_retries) is None else settings.retry_delay_s

    patch.setattr("rekindle.actors.simulation.scripted.scripted_jobs.retry_delay", delay)


def announces_no_requeued_job(patch: pytest.MonkeyPatch) -> None:
    """The outcome for the jobs of a dead worker is not published."""
    patch.setattr(JobDesk, "_tell_of", lambda _self, _job: None)
