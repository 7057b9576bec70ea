"""Jobs that come after others, and batches, over every implementation of the port."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from tests.contract.jobs.test_queue_pauses import idle_for_s
from tests.contract.queues import NOW, Queues, new
from tests.processes.waiting import PATIENCE_S

from rekindle.actors.errors import PayloadError, RequestRefusedError, UnknownJobError
from rekindle.actors.spec.job_payload import checked_batch, new_jobs
from rekindle.actors.spec.policies.retention_policy import Retention
from rekindle.worker.jobs.claims import Claimant, ClaimRequest, failed, finished
from rekindle.worker.jobs.queue_address import open_claims

TAG = ClaimRequest(("tag",))


def state(queues: Queues, *job_ids: int) -> list[str]:
    return [queues.jobs.get(job_id).state for job_id in job_ids]


def do(queues: Queues, job: int) -> None:
    """Have a worker do the job, which must be the next one."""
    claim = queues.claim()
    assert claim.id == job
    assert queues.finish(claim)


def test_a_job_runs_when_all_that_it_comes_after_are_done(queues: Queues) -> None:
    first, second = queues.add(), queues.add()
    last = queues.add(after=(first, second, second))
    assert state(queues, last) == ["waiting"]
    do(queues, first)
    assert queues.jobs.get(last).waits_for == 1
    do(queues, second)
    do(queues, last)


def test_a_job_after_one_that_is_done_already_runs_at_once(queues: Queues) -> None:
    first = queues.add()
    do(queues, first)
    do(queues, queues.add(after=(first,)))


def test_all_jobs_after_a_toxic_one_are_cancelled_with_the_reason(queues: Queues) -> None:
    first, bystander = queues.add(), queues.add(priority=5)
    second = queues.add(after=(first,))
    third = queues.add(after=(second, bystander))
    queues.crash(first, times=3, crash_retries=2)
    assert state(queues, first, second, third) == ["toxic", "cancelled", "cancelled"]
    assert queues.jobs.get(third).error == f"job {first}, which it comes after, is toxic"
    assert queues.claim(generation=9).id == bystander


def test_cancelling_a_job_cancels_those_after_it_and_a_retry_brings_them_back(queues: Queues) -> None:
    first = queues.add()
    second = queues.add(after=(first,))
    queues.jobs.cancel([first])
    assert state(queues, first, second) == ["cancelled", "cancelled"]
    with pytest.raises(RequestRefusedError, match=f"comes after job {first}, which is cancelled"):
        queues.jobs.retry([second])
    queues.jobs.retry([first])
    assert state(queues, first, second) == ["pending", "waiting"]
    do(queues, first)
    do(queues, second)


def test_jobs_of_a_chain_can_be_retried_together(queues: Queues) -> None:
    first = queues.add()
    second = queues.add(after=(first,))
    queues.jobs.cancel([first])
    queues.jobs.retry([second, first])
    assert state(queues, first, second) == ["pending", "waiting"]


def test_a_waiting_job_can_be_cancelled_alone(queues: Queues) -> None:
    first = queues.add()
    second = queues.add(after=(first,))
    queues.jobs.cancel([second])
    do(queues, first)
    assert state(queues, second) == ["cancelled"]
    queues.jobs.retry([second])
    do(queues, second)


def test_a_number_that_no_job_has_or_whose_job_failed_is_refused_and_nothing_is_added(
    queues: Queues,
) -> None:
    first = queues.add()
    for unknown in (first + 100, 10**12):
        with pytest.raises(UnknownJobError):
            queues.jobs.add("tag", [new(), new(after=(first, unknown))])
    queues.jobs.cancel([first])
    with pytest.raises(RequestRefusedError, match="no job can come after it"):
        queues.add(after=(first,))
    if queues.store.address is not None:  # memory knows no transaction
        assert [job.id for job in queues.jobs.find()] == [first]


def test_a_job_that_others_wait_for_is_not_dropped(queues: Queues) -> None:
    first = queues.add()
    queues.add(after=(first,))
    with pytest.raises(RequestRefusedError, match="cancel it instead"):
        queues.jobs.drop([first])


def test_a_long_chain_is_cancelled_at_once(queues: Queues) -> None:
    ids = [queues.add()]
    for _ in range(1200):
        ids += queues.jobs.add("tag", [new(after=(ids[-1],))])
    queues.jobs.cancel(ids[:1])
    assert {job.state for job in queues.jobs.find(limit=2000)} == {"cancelled"}


@pytest.mark.parametrize("after", ["12", [1.5], [0], [True], 7])
def test_something_else_than_numbers_is_refused_in_the_caller(after: Any) -> None:
    with pytest.raises(PayloadError, match="after must be numbers of jobs"):
        new_jobs([1], 0, after=after)


def test_the_job_at_the_end_of_a_batch_runs_once_with_the_counts(queues: Queues) -> None:
    batch = queues.jobs.add_batch("tag", [new(), new(), new()], new('"last"'), "mail")
    first, second, third = batch.job_ids
    assert batch.callback_id is not None
    assert state(queues, batch.callback_id) == ["waiting"]
    do(queues, first)
    queues.jobs.cancel([second])
    (shown,) = queues.jobs.batches()
    assert (shown.total, shown.done, shown.failed, shown.callback_id) == (3, 1, 1, batch.callback_id)
    do(queues, third)
    claim = queues.claim("mail")
    assert claim.id == batch.callback_id
    assert json.loads(claim.batch_counts) == {"id": batch.id, "total": 3, "done": 2, "failed": 1}
    assert queues.finish(claim)
    queues.jobs.retry([second])
    do(queues, second)
    (shown,) = queues.jobs.batches(batch.id)
    assert (shown.done, shown.failed) == (3, 0)
    assert queues.claim("mail") is None


def test_a_batch_ends_when_a_failure_cancels_the_rest_of_its_chain(queues: Queues) -> None:
    first = queues.add()
    batch = queues.jobs.add_batch("tag", [new(after=(first,)), new(after=(first,))], new(), "mail")
    queues.jobs.cancel([first])
    assert json.loads(queues.claim("mail").batch_counts)["failed"] == 2
    assert batch.callback_id is not None


def test_a_batch_without_jobs_is_refused() -> None:
    with pytest.raises(PayloadError, match="at least one job"):
        checked_batch([])


def test_the_end_of_the_last_job_wakes_a_worker_for_the_job_after_it(sql_queues: Queues) -> None:
    first = sql_queues.add("mail")
    sql_queues.add(after=(first,))
    other = sql_queues.claims(generation=2)
    claim = other.exchange(None, ClaimRequest(("mail",))).claim
    assert claim is not None
    end = threading.Timer(0.3, lambda: other.exchange(finished(claim, None), None))
    end.start()
    assert idle_for_s(sql_queues) < PATIENCE_S
    end.join()
    assert sql_queues.claim() is not None


def test_workers_that_end_jobs_of_a_batch_at_the_same_time_start_its_last_job_once(
    sql_queues: Queues,
) -> None:
    address = sql_queues.store.address
    assert address is not None
    batches = [sql_queues.jobs.add_batch("tag", [new()] * 8, new(), "mail") for _ in range(5)]

    def work(number: int) -> None:
        claims = open_claims(address, Claimant(f"worker:tag:{number}", 1, "run"))
        claim = claims.exchange(None, TAG).claim
        while claim is not None:
            ending = failed(claim, "no", None) if claim.id % 7 == 0 else finished(claim, None)
            claim = claims.exchange(ending, TAG).claim
        claims.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for shown in sql_queues.jobs.batches():
        assert shown.done + shown.failed == 8
    ran = []
    while (claim := sql_queues.claim("mail")) is not None:
        ran.append(claim.id)
        sql_queues.finish(claim)
    assert sorted(ran) == sorted(batch.callback_id or 0 for batch in batches)


def test_a_batch_is_deleted_after_the_job_at_its_end(queues: Queues) -> None:
    batch = queues.jobs.add_batch("tag", [new()], new(), "mail")
    open_one = queues.jobs.add_batch("other", [new()], None, "other")
    queues.finish(queues.claim())
    retention = Retention(job_count=0)
    queues.store.prune(retention, NOW)
    assert [each.id for each in queues.jobs.batches()] == [open_one.id, batch.id]  # its last job waits
    queues.finish(queues.claim("mail"))
    while queues.store.prune(retention, NOW):
        pass
    assert [each.id for each in queues.jobs.batches()] == [open_one.id]
