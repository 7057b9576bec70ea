"""The life of one job: cancelled, timed out, expired, retried with its own delays."""

from __future__ import annotations

from typing import Any

import pytest
from tests.contract.queues import NOW, RUN, TAG, Queues

from rekindle.actors.errors import JobFailedError, RequestRefusedError, RequestTimeoutError, UnknownJobError
from rekindle.actors.facts.jobs import ErrorRetries, JobState
from rekindle.persistence.jobs.memory_jobs import MemoryJobs
from rekindle.worker.jobs.claims import Claim, Claimant, ClaimRequest, Claims, cancelled, failed, finished


def worker(queues: Queues, generation: int = 1) -> Claims:
    """A worker's own connection, to any store."""
    if isinstance(queues.jobs, MemoryJobs):
        return queues.jobs.claims(Claimant(TAG, generation, RUN))
    return queues.claims(generation=generation)


def taken(claims: Claims) -> Claim | None:
    """The next job of the queue."""
    return claims.exchange(None, ClaimRequest(("tag",))).claim


def begun(queues: Queues, **settings: Any) -> tuple[int, Claims, Claim]:
    """A job that a worker executes."""
    job, claims = queues.add(**settings), worker(queues)
    claim = taken(claims)
    assert claim is not None
    return job, claims, claim


# ── cancel ───────────────────────────────────────────────────────────────────────────────


def test_a_pending_job_is_cancelled_at_once_and_never_claimed(queues: Queues) -> None:
    job = queues.add()
    assert queues.jobs.cancel([job]) == (JobState.CANCELLED,)
    after = queues.jobs.get(job)
    assert after.state == "cancelled"
    assert after.finished_at_wall_ms is not None
    assert taken(worker(queues)) is None


def test_a_running_job_that_is_cancelled_runs_until_its_worker_ends_it(queues: Queues) -> None:
    job, claims, claim = begun(queues)
    assert queues.jobs.cancel([job]) == (JobState.RUNNING,)
    assert queues.jobs.get(job).cancel_requested_at_wall_ms is not None
    assert [each.id for each in queues.jobs.limited()] == [job]
    assert claims.exchange(cancelled(claim), None).accepted
    assert queues.jobs.get(job).state == "cancelled"
    assert queues.jobs.limited() == ()


@pytest.mark.parametrize("comes_back", ["result", "failure", "retry"])
def test_a_cancelled_job_that_comes_back_is_refused(queues: Queues, comes_back: str) -> None:
    job, claims, claim = begun(queues)
    queues.jobs.cancel([job])
    endings = {
        "result": finished(claim, '"late"'),
        "failure": failed(claim, "late", None),
        "retry": failed(claim, "late", 0.0),
    }
    exchanged = claims.exchange(endings[comes_back], ClaimRequest(("tag",)))
    assert exchanged.accepted is False
    assert exchanged.claim is None
    after = queues.jobs.get(job)
    assert (after.state, after.result) == ("cancelled", None)
    assert after.finished_at_wall_ms is not None


def test_a_cancelled_job_stores_neither_checkpoint_nor_progress(queues: Queues) -> None:
    job, claims, claim = begun(queues)
    assert claims.save(claim, "1")
    assert claims.show(claim, '{"done": 1}')
    queues.jobs.cancel([job])
    assert not claims.save(claim, "2")
    assert not claims.show(claim, '{"done": 2}')
    after = queues.jobs.get(job)
    assert after.checkpoint == "1"
    assert after.progress is not None
    assert after.progress.done == 1
    assert [each.execution for each in claims.mine()] == [claim.execution]


@pytest.mark.parametrize("counted", [True, False])
def test_a_cancelled_job_whose_worker_ends_is_cancelled_without_evidence(
    queues: Queues, counted: bool
) -> None:
    job, _, _ = begun(queues)
    neighbour = queues.add()
    assert taken(worker(queues)) is not None
    queues.jobs.cancel([job])
    settled = {each.job_id: each.state for each in queues.end(counted=counted)}
    assert settled == {job: JobState.CANCELLED, neighbour: JobState.PENDING}
    assert queues.jobs.get(job).state == "cancelled"
    assert queues.jobs.crashes([job]) == ()
    assert queues.jobs.get(neighbour).crash_count == (1 if counted else 0)


def test_a_cancelled_job_of_a_lost_supervisor_is_cancelled(queues: Queues) -> None:
    job, _, _ = begun(queues)
    queues.jobs.cancel([job])
    (settled,) = queues.start_next_run()
    assert settled.state is JobState.CANCELLED


def test_only_a_job_that_has_not_ended_can_be_cancelled_and_all_or_none(queues: Queues) -> None:
    job, _, claim = begun(queues)
    pending = queues.add()
    worker(queues).exchange(finished(claim, None), None)
    with pytest.raises(
        RequestRefusedError, match=f"job {job} is done already: only a job that has not ended"
    ):
        queues.jobs.cancel([pending, job])
    with pytest.raises(UnknownJobError):
        queues.jobs.cancel([pending, 10_000])
    assert queues.jobs.get(pending).state == "pending"
    assert queues.jobs.cancel([]) == ()


def test_a_running_job_may_be_cancelled_twice_and_keeps_the_first_time(queues: Queues) -> None:
    job, _, _ = begun(queues)
    queues.jobs.cancel([job])
    since = queues.jobs.get(job).cancel_requested_at_wall_ms
    assert queues.jobs.cancel([job]) == (JobState.RUNNING,)
    assert queues.jobs.get(job).cancel_requested_at_wall_ms == since


def test_a_cancelled_job_can_be_retried(queues: Queues) -> None:
    job = queues.add()
    queues.jobs.cancel([job])
    queues.jobs.retry([job])
    claims = worker(queues)
    claim = taken(claims)
    assert claim is not None
    assert claims.exchange(finished(claim, "1"), None).accepted
    assert queues.jobs.get(job).result == "1"


def test_the_figures_count_cancelled_jobs(queues: Queues) -> None:
    queues.jobs.cancel([queues.add()])
    (figures,) = queues.jobs.stats()
    assert (figures.cancelled, figures.pending) == (1, 0)


# ── time limits ──────────────────────────────────────────────────────────────────────────


def test_a_job_whose_worker_was_ended_after_its_time_limit_failed_and_no_other_did(queues: Queues) -> None:
    job, _, claim = begun(queues, timeout_ms=1)
    neighbour = queues.add()
    assert taken(worker(queues)) is not None
    assert claim.timeout_ms == 1
    settled = {each.job_id: each for each in queues.end(counted=False, at_wall_ms=10 * NOW)}
    assert (settled[job].state, settled[job].timed_out) == (JobState.ERROR, True)
    after = queues.jobs.get(job)
    assert after.error == "timed out after 0.001 s; its process was ended"
    assert (after.error_count, after.crash_count) == (1, 0)
    assert [error.attempt for error in after.errors] == [1]
    assert queues.jobs.get(neighbour).state == "pending"
    assert queues.jobs.crashes([job, neighbour]) == ()


def test_a_job_that_timed_out_is_retried_like_one_that_raised(queues: Queues) -> None:
    job, _, _ = begun(queues, timeout_ms=1)
    policy = ErrorRetries(retries=1, delay_s=7.0)
    queues.end(counted=False, at_wall_ms=10 * NOW, error_retries=policy)
    after = queues.jobs.get(job)
    assert (after.state, after.not_before_wall_ms) == ("pending", 10 * NOW + 7000)


def test_a_stop_before_the_time_limit_is_not_a_time_out(queues: Queues) -> None:
    job, _, _ = begun(queues, timeout_ms=10**15)
    queues.end(counted=False)
    assert (queues.jobs.get(job).state, queues.jobs.get(job).error_count) == ("pending", 0)


def test_a_job_of_a_lost_supervisor_has_not_timed_out(queues: Queues) -> None:
    """How long its execution took is not known."""
    job, _, _ = begun(queues, timeout_ms=1)
    queues.start_next_run()
    assert (queues.jobs.get(job).state, queues.jobs.get(job).error_count) == ("pending", 0)


# ── errors ───────────────────────────────────────────────────────────────────────────────


def test_the_error_of_every_attempt_is_kept(queues: Queues) -> None:
    job, claims, claim = begun(queues, retry_delay_ms=10, max_retry_delay_ms=20)
    assert (claim.retry_delay_ms, claim.max_retry_delay_ms) == (10, 20)
    claims.exchange(failed(claim, "first", 0.0, worker=TAG), None)
    again = taken(claims)
    assert again is not None
    claims.exchange(failed(again, "second", None, worker=TAG), None)
    after = queues.jobs.get(job)
    assert [(error.attempt, error.error, error.component_id) for error in after.errors] == [
        (1, "first", TAG),
        (2, "second", TAG),
    ]
    assert (after.state, after.error, after.error_count) == ("error", "second", 2)


# ── expiry ───────────────────────────────────────────────────────────────────────────────


def test_a_job_that_has_not_begun_in_time_expires_instead_of_being_claimed(queues: Queues) -> None:
    late, fresh = queues.add(expires_at_wall_ms=1), queues.add()
    claim = taken(worker(queues))
    assert claim is not None
    assert claim.id == fresh
    after = queues.jobs.get(late)
    assert (after.state, after.attempts, after.started_at_wall_ms) == ("expired", 0, None)
    assert after.finished_at_wall_ms is not None


def test_many_expired_jobs_are_passed_over(queues: Queues) -> None:
    for _ in range(7):
        queues.add(expires_at_wall_ms=1)
    assert taken(worker(queues)) is None
    assert {job.state for job in queues.jobs.find()} == {"expired"}


def test_a_job_that_has_begun_in_time_does_not_expire(queues: Queues) -> None:
    job, claims, claim = begun(queues, expires_at_wall_ms=10 * NOW)
    claims.exchange(failed(claim, "again", 0.0), None)
    assert queues.jobs.next_expiry() is None
    assert queues.jobs.expire(20 * NOW) == ()
    assert queues.jobs.get(job).state == "pending"


def test_jobs_expire_without_a_worker(queues: Queues) -> None:
    late = queues.add(expires_at_wall_ms=1)
    queues.add(expires_at_wall_ms=10 * NOW)
    queues.add()
    assert queues.jobs.next_expiry() == 1
    assert queues.jobs.expire(NOW) == (late,)
    assert queues.jobs.next_expiry() == 10 * NOW
    (figures,) = queues.jobs.stats()
    assert (figures.expired, figures.pending) == (1, 2)


def test_an_expired_job_can_be_retried_and_does_not_expire_again(queues: Queues) -> None:
    job = queues.add(expires_at_wall_ms=1)
    queues.jobs.expire(NOW)
    queues.jobs.retry([job])
    claim = taken(worker(queues))
    assert claim is not None
    assert claim.id == job


# ── values ───────────────────────────────────────────────────────────────────────────────


def test_payload_result_and_checkpoint_are_python_values(queues: Queues) -> None:
    job, claims, claim = begun(queues, payload='{"path":"song.mp3"}')
    claims.save(claim, "[1,2]")
    assert queues.jobs.get(job).checkpoint_value == [1, 2]
    claims.exchange(finished(claim, '{"tags":["rock"]}'), None)
    done = queues.jobs.get(job)
    assert (done.payload_value, done.result_value) == ({"path": "song.mp3"}, {"tags": ["rock"]})
    assert queues.jobs.result(job) == {"tags": ["rock"]}


def test_a_value_that_is_cut_is_not_decoded(queues: Queues) -> None:
    job = queues.add(payload="[1,2,3]")
    (cut,) = queues.jobs.named([job], longest=3)
    assert (cut.payload, cut.payload_cut, cut.payload_value) == ("[1,", True, None)


def test_a_job_without_a_result_raises_why(queues: Queues) -> None:
    job, claims, claim = begun(queues)
    with pytest.raises(RequestTimeoutError, match=f"job {job} is running: it has no result yet"):
        queues.jobs.result(job, timeout_s=0.01)
    claims.exchange(failed(claim, "ValueError: no\ntrace", None), None)
    with pytest.raises(JobFailedError, match=r"^job \d+ failed: ValueError: no$") as raised:
        queues.jobs.result(job)
    assert (raised.value.job_id, raised.value.state) == (job, "error")
    with pytest.raises(UnknownJobError):
        queues.jobs.result(10_000)
