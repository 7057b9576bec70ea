"""What every store makes of jobs: claimed once, counted at the start, fenced at the end."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from sqlalchemy import Engine, text
from tests.contract.queues import NOW, RUN, TAG, Queues, new

from rekindle.actors.deaths.death import Action, Cause
from rekindle.actors.errors import RequestRefusedError, UnknownJobError
from rekindle.actors.facts.jobs import JobState
from rekindle.actors.facts.records import ClaimsReleased, FormerClaimsReleased
from rekindle.actors.spec.policies.retention_policy import Retention


def test_jr_02_the_job_of_a_dead_worker_is_pending_again_with_one_crash(queues: Queues) -> None:
    job = queues.add()
    queues.claim()
    (settled,) = queues.end()
    assert (settled.job_id, settled.state, settled.crash_count) == (job, JobState.PENDING, 1)
    after = queues.jobs.get(job)
    assert (after.state, after.crash_count, after.attempts) == ("pending", 1, 1)


def test_jobs_are_found_by_their_numbers_and_unknown_numbers_are_left_out(queues: Queues) -> None:
    first, second = queues.add(), queues.add()
    assert [job.id for job in queues.jobs.named({second, 10_000, first})] == [first, second]
    assert queues.jobs.named([]) == ()


def test_jr_03_the_third_crash_makes_a_job_toxic(queues: Queues) -> None:
    job = queues.add()
    queues.crash(job, times=2)
    assert (queues.jobs.get(job).state, queues.jobs.get(job).crash_count) == ("pending", 2)
    queues.crash(job, first_generation=3)
    toxic = queues.jobs.get(job)
    assert (toxic.state, toxic.crash_count, toxic.toxic_since_wall_ms) == ("toxic", 3, NOW)
    assert toxic.error == "failed after 3 worker crashes"
    assert queues.claim(generation=4) is None


def test_jr_01_jr_04_what_a_dead_worker_had_finished_is_left_alone(queues: Queues) -> None:
    job = queues.add()
    assert queues.finish(queues.claim(), '"result"')
    assert queues.end() == ()
    done = queues.jobs.get(job)
    assert (done.state, done.result, done.crash_count) == ("done", '"result"', 0)


def test_jr_08_success_clears_the_crash_count(queues: Queues) -> None:
    job = queues.add()
    queues.crash(job, times=2)
    assert queues.finish(queues.claim(generation=3), generation=3)
    assert (queues.jobs.get(job).state, queues.jobs.get(job).crash_count) == ("done", 0)


def test_jr_09_a_toxic_job_is_listed_with_its_evidence_and_can_be_retried(queues: Queues) -> None:
    job = queues.add()
    queues.crash(job, times=3, cause="signalled", signal=11, output=("Segmentation fault",))
    assert [toxic.id for toxic in queues.jobs.find(state="toxic")] == [job]
    crashes = queues.jobs.crashes([job])
    assert [(c.attempt, c.component_id, c.generation, c.signal) for c in crashes] == [
        (number, TAG, number, 11) for number in (1, 2, 3)
    ]
    assert crashes[0].output == ("Segmentation fault",)
    queues.jobs.retry([job])
    again = queues.jobs.get(job)
    assert (again.state, again.crash_count, again.error, again.toxic_since_wall_ms) == (
        "pending",
        0,
        None,
        None,
    )
    assert queues.claim(generation=9).id == job


def test_jr_10_every_job_has_a_count_of_its_own(queues: Queues) -> None:
    tagged, listed = queues.add("tag"), queues.add("library")
    queues.crash(tagged)
    assert queues.jobs.get(listed).crash_count == 0


def test_jr_11_a_death_that_is_reported_twice_counts_once(queues: Queues) -> None:
    job = queues.add()
    queues.claim()
    queues.end()
    assert queues.end() == ()
    assert queues.jobs.get(job).crash_count == 1


def test_jr_13_all_claims_of_a_dead_worker_are_released(queues: Queues) -> None:
    jobs = [queues.add() for _ in range(4)]
    for _ in range(3):
        queues.claim()
    assert [settled.job_id for settled in queues.end()] == jobs[:3]
    assert {job.state for job in queues.jobs.find()} == {"pending"}


def test_a_worker_that_was_stopped_is_not_a_crash(queues: Queues) -> None:
    """SD-11: the job is released, and nothing counts against it."""
    job = queues.add()
    queues.claim()
    (settled,) = queues.end(counted=False)
    assert (settled.counted, settled.crash_count) == (False, 0)
    assert queues.jobs.get(job).state == "pending"
    assert queues.jobs.crashes([job]) == ()


def test_without_a_limit_a_job_is_always_released(queues: Queues) -> None:
    job = queues.add()
    queues.crash(job, times=10, crash_retries=None)
    assert (queues.jobs.get(job).state, queues.jobs.get(job).crash_count) == ("pending", 10)


def test_a_zombie_s_result_is_refused(queues: Queues) -> None:
    job = queues.add()
    zombie = queues.claim()
    queues.end()
    alive = queues.claim(generation=2)
    assert not queues.finish(zombie, '"stale"')
    assert queues.finish(alive, '"fresh"', generation=2)
    assert not queues.finish(zombie, '"stale"')
    assert queues.jobs.get(job).result == '"fresh"'


def test_a_late_release_leaves_the_claims_of_the_next_incarnation_alone(queues: Queues) -> None:
    queues.add()
    queues.claim(generation=2)
    assert queues.end(generation=1) == ()
    assert queues.end(run="another run", generation=2) == ()


def test_the_claims_of_a_former_run_are_released_and_not_counted(queues: Queues) -> None:
    """A worker that ended with its supervisor left no death: the job is not to blame."""
    old, new_ = queues.add(), queues.add()
    queues.claim(run="former")
    queues.claim(run="next run")
    (settled,) = queues.start_next_run("next run")
    assert (settled.job_id, settled.counted, settled.crash_count) == (old, False, 0)
    assert queues.jobs.get(new_).state == "running"
    assert queues.jobs.crashes([old]) == ()


def test_a_former_run_s_recorded_death_counts_with_its_own_cause_and_budget(queues: Queues) -> None:
    """The former run was killed between the commit of the death and the release of the claim."""
    job = queues.add()
    queues.claim(run="former")
    queues.record_death()
    (settled,) = queues.store.commit([_former({TAG: 0})])
    assert (settled.job_id, settled.state) == (job, JobState.TOXIC)
    (crash,) = queues.jobs.crashes([job])
    assert (crash.cause, crash.signal, crash.generation) == ("killed by SIGKILL", 9, 1)


def test_a_job_is_not_blamed_for_a_death_that_is_not_recorded(queues: Queues) -> None:
    job = queues.add()
    queues.claim()
    unrecorded = ClaimsReleased(
        component_id=TAG, generation=1, run=RUN, at_wall_ms=NOW, counted=True, cause="not recorded"
    )
    (settled,) = queues.store.commit([unrecorded])
    assert (settled.counted, settled.crash_count) == (False, 0)
    assert queues.jobs.crashes([job]) == ()


def test_a_job_is_not_blamed_for_the_loss_of_the_supervisor(queues: Queues) -> None:
    job = queues.add()
    queues.claim(run="former")
    queues.record_death(cause=Cause.SUPERVISOR_LOST, signal=None)
    (settled,) = queues.start_next_run("next run")
    assert (settled.counted, settled.crash_count, queues.jobs.crashes([job])) == (False, 0, ())


def test_a_job_is_not_blamed_for_a_death_that_an_open_breaker_holds(queues: Queues) -> None:
    """The dependency of the worker was unavailable: any job would have died there."""
    job = queues.add()
    queues.claim()
    queues.record_death(action=Action.HELD)
    (settled,) = queues.store.commit(
        [ClaimsReleased(component_id=TAG, generation=1, run=RUN, at_wall_ms=NOW, counted=True, cause="held")]
    )
    assert (settled.counted, settled.crash_count, queues.jobs.crashes([job])) == (False, 0, ())


def test_a_job_is_blamed_once_for_one_death(queues: Queues) -> None:
    """The same incarnation is found to hold the job again, as after a release that was committed twice."""
    job = queues.add()
    queues.crash(job)
    queues.claim(generation=1, run="former")
    (settled,) = queues.start_next_run("next run")
    assert (settled.counted, settled.crash_count) == (False, 1)
    assert len(queues.jobs.crashes([job])) == 1


def test_a_list_reads_no_more_of_payload_and_result_than_it_is_asked_to(queues: Queues) -> None:
    long, short = queues.add(payload=f'"{"ä" * 5000}"'), queues.add(payload='"short"')
    for _ in range(2):
        queues.finish(queues.claim(), f'"{"r" * 100}"')
    for found in (
        queues.jobs.find(longest=50)[::-1],
        queues.jobs.named([long, short], longest=50),
        queues.jobs.taken_by(TAG, longest=50)[::-1],
    ):
        first, second = found
        assert (first.payload, first.payload_cut, first.result_cut) == ('"' + "ä" * 49, True, True)
        assert (second.payload, second.payload_cut, second.result) == ('"short"', False, '"' + "r" * 49)
    whole = queues.jobs.find()[1]
    assert (len(whole.payload), whole.payload_cut, len(whole.result or "")) == (5002, False, 102)


def test_jobs_come_by_priority_then_in_the_order_of_their_time(queues: Queues) -> None:
    late = queues.add(not_before_wall_ms=1_000)
    early = queues.add(not_before_wall_ms=500)
    urgent = queues.add(priority=-1, not_before_wall_ms=2_000)
    queues.add(not_before_wall_ms=2**62)
    claimed = [queues.claim() for _ in range(4)]
    assert [claim and claim.id for claim in claimed] == [urgent, early, late, None]


def test_many_jobs_get_their_numbers_in_order(queues: Queues) -> None:
    ids = queues.jobs.add("tag", [new(f"{number}") for number in range(2500)])
    assert list(ids) == sorted(ids)
    assert [queues.jobs.get(ids[index]).payload for index in (0, 1200, 2499)] == ["0", "1200", "2499"]


def test_a_number_that_no_job_has_is_an_error_and_changes_nothing(queues: Queues) -> None:
    job = queues.add()
    queues.crash(job, times=3)
    for change in (queues.jobs.retry, queues.jobs.drop):
        with pytest.raises(UnknownJobError, match=r"^there is no job 99$"):
            change([job, 99])
    with pytest.raises(UnknownJobError):
        queues.jobs.get(99)
    assert queues.jobs.get(job).state == "toxic"


def test_numbers_that_no_database_counts_to_and_more_than_a_statement_takes(queues: Queues) -> None:
    job = queues.add()
    many = [*range(job, job + 100_000), 10**23, -(10**23)]
    assert [each.id for each in queues.jobs.named(many)] == [job]
    assert [each.id for each in queues.jobs.named([job] * 1000)] == [job]
    assert queues.jobs.crashes(many) == ()
    with pytest.raises(UnknownJobError):
        queues.jobs.drop(many)
    with pytest.raises(UnknownJobError):
        queues.jobs.get(10**23)


def test_only_jobs_that_ended_badly_are_retried_and_none_is_dropped_while_it_runs(queues: Queues) -> None:
    job = queues.add()
    with pytest.raises(
        RequestRefusedError,
        match=r"is pending: only a job that failed, is toxic, was cancelled or expired is retried",
    ):
        queues.jobs.retry([job])
    queues.claim()
    with pytest.raises(RequestRefusedError, match=r"is running: it cannot be dropped now"):
        queues.jobs.drop([job])
    queues.end()
    queues.jobs.drop([job])
    assert queues.jobs.find() == ()
    assert queues.jobs.crashes([job]) == ()


def test_what_was_done_long_ago_can_be_forgotten(queues: Queues) -> None:
    done, pending = queues.add(), queues.add()
    queues.finish(queues.claim())
    assert queues.jobs.prune(finished_before_wall_ms=1) == 0
    assert queues.jobs.prune(finished_before_wall_ms=2**62) == 1
    assert [job.id for job in queues.jobs.find()] == [pending]
    with pytest.raises(UnknownJobError):
        queues.jobs.get(done)


def test_the_figures_of_a_queue(queues: Queues) -> None:
    for _ in range(3):
        queues.add()
    queues.add("library")
    queues.finish(queues.claim())
    queues.claim()
    library, tag = queues.jobs.stats()
    assert (library.queue, library.pending, library.completed, library.average_s) == ("library", 1, 0, 0.0)
    assert (tag.queue, tag.pending, tag.running, tag.completed) == ("tag", 1, 1, 1)


def test_the_figures_of_a_queue_follow_every_change_of_its_jobs(queues: Queues) -> None:
    first, second, third = (queues.add() for _ in range(3))
    later = queues.add(after=(second,))
    batch = queues.jobs.add_batch("tag", [new(after=(third,))], new(), "tag")
    changes = (
        lambda: queues.finish(queues.claim()),
        lambda: queues.jobs.cancel([second]),  # and with it the job after it
        lambda: queues.jobs.retry([second]),
        lambda: queues.jobs.cancel([third, later]),
        lambda: queues.crash(queues.add(priority=-1), 3),
        lambda: queues.jobs.drop([later]),
        lambda: queues.store.prune(Retention(job_count=0), NOW),
    )
    for change in changes:
        change()
        (stats,) = queues.jobs.stats()
        found = Counter(job.state for job in queues.jobs.find())
        shown = (stats.pending, stats.running, stats.completed, stats.toxic, stats.cancelled, stats.waiting)
        states = ("pending", "running", "done", "toxic", "cancelled", "waiting")
        assert shown == tuple(found[state] for state in states)
    assert batch.callback_id is not None
    assert first not in {job.id for job in queues.jobs.find()}


def test_jr_07_a_corrupt_crash_count_counts_as_zero_with_a_warning(
    sql_queues: Queues, rows: Engine, logs: list[str]
) -> None:
    job = sql_queues.add()
    corrupt = "'three'" if rows.dialect.name == "sqlite" else "-3"
    with rows.begin() as connection:
        connection.execute(text(f"UPDATE rekindle_job SET crash_count = {corrupt}"))
    assert sql_queues.jobs.get(job).crash_count == 0
    sql_queues.crash(job)
    assert sql_queues.jobs.get(job).crash_count == 1
    assert any(
        line.startswith(f"WARNING store: job {job} has an invalid crash count, taken as 0: ") for line in logs
    )


def test_a_claim_and_the_death_of_its_holder_are_one_transaction_s_worth(sql_queues: Queues) -> None:
    """A batch that fails as a whole releases nothing, and may be repeated."""
    job = sql_queues.add()
    sql_queues.claim()
    with pytest.raises(KeyError):
        sql_queues.store.commit([_former({}), "no record"])  # type: ignore[list-item]
    assert sql_queues.jobs.get(job).state == "running"


def _former(retries: dict[str, int | None]) -> FormerClaimsReleased:
    return FormerClaimsReleased(run="next run", at_wall_ms=NOW, crash_retries=retries)


DAY = 86_400_000


def _pruned(queues: Queues, now_wall_ms: int, **retention: Any) -> set[int]:
    """What is left after all that is too old has gone."""
    while queues.store.prune(Retention(**retention), now_wall_ms):
        pass
    return {job.id for job in queues.jobs.find(limit=1000)}


def test_old_ended_jobs_are_deleted_and_unfinished_jobs_stay(queues: Queues) -> None:
    done, waiting, taken = (queues.add() for _ in range(3))
    assert queues.finish(queues.claim(), "1")
    assert queues.claim().id == waiting
    now = (queues.jobs.get(done).finished_at_wall_ms or 0) + 30 * DAY
    assert _pruned(queues, now) == {done, waiting, taken}
    assert _pruned(queues, now + 1) == {waiting, taken}


def test_ended_jobs_beyond_the_limit_are_deleted(queues: Queues) -> None:
    ids = [queues.add() for _ in range(5)]
    for _ in ids[:4]:
        assert queues.finish(queues.claim())
    now = queues.jobs.get(ids[0]).finished_at_wall_ms or 0
    assert _pruned(queues, now, job_count=2) == set(ids[3:])


def test_ended_jobs_beyond_the_size_are_deleted_the_oldest_first(queues: Queues) -> None:
    waiting = queues.add("other", payload='"' + "x" * 900 + '"')
    ids = [queues.add(payload='"' + "x" * 298 + '"') for _ in range(4)]
    for _ in ids:
        assert queues.finish(queues.claim(), "1" * 100)
    now = queues.jobs.get(ids[0]).finished_at_wall_ms or 0
    assert _pruned(queues, now, job_mb=0.0008) == {waiting, *ids[2:]}
    assert _pruned(queues, now, job_mb=0.0008) == {waiting, *ids[2:]}


def test_the_sizes_of_jobs_are_added_up_a_few_at_a_time(
    sql_queues: Queues, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rekindle.persistence.retention.CHUNK", 3)
    ids = [sql_queues.add(payload="1" * 100) for _ in range(20)]
    for _ in ids:
        assert sql_queues.finish(sql_queues.claim())
    now = sql_queues.jobs.get(ids[0]).finished_at_wall_ms or 0
    assert _pruned(sql_queues, now, job_mb=0.0005) == set(ids[15:])


def test_a_toxic_job_goes_with_the_history_and_its_evidence_with_it(queues: Queues) -> None:
    job = queues.add()
    queues.crash(job, times=3)
    since = queues.jobs.get(job).toxic_since_wall_ms or 0
    assert _pruned(queues, since + 365 * DAY) == {job}
    assert len(queues.jobs.crashes([job])) == 3
    assert _pruned(queues, since + 365 * DAY + 1) == set()
    assert queues.jobs.crashes([job]) == ()
