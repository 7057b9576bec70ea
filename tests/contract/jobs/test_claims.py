"""A worker's own connection to the queues, on real databases."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import psycopg
import pytest
from sqlalchemy import Engine, text
from tests.contract.jobs.claimers import JOBS, claim_everything
from tests.contract.queues import RUN, Queues
from tests.contract.queues import TAG as WORKER
from tests.processes.waiting import eventually

from rekindle.actors.facts.jobs import NewJob
from rekindle.persistence import open_store
from rekindle.persistence.store import SqlStore
from rekindle.worker import Worker
from rekindle.worker.jobs.claims import (
    Claimant,
    ClaimRequest,
    Claims,
    QueueUnavailableError,
    failed,
    finished,
    given_back,
)
from rekindle.worker.jobs.held_jobs import HeldJobs
from rekindle.worker.jobs.queue_address import open_claims
from rekindle.worker.jobs.sqlite import TURN_SUFFIX, WANT_SUFFIX, SqliteClaims

TAG = ClaimRequest(("tag",))


def test_finishing_a_job_and_claiming_the_next_is_one_exchange(sql_queues: Queues) -> None:
    first, second = sql_queues.add(), sql_queues.add()
    claims = sql_queues.claims()
    claim = claims.exchange(None, TAG).claim
    assert claim is not None
    exchanged = claims.exchange(finished(claim, "1"), TAG)
    assert exchanged.accepted is True
    assert exchanged.claim is not None
    assert (claim.id, exchanged.claim.id) == (first, second)
    assert exchanged.claim.attempt == 1


def test_jr_05_an_exception_ends_a_job_without_a_crash(sql_queues: Queues) -> None:
    job = sql_queues.add()
    claim = sql_queues.claim()
    assert sql_queues.claims().exchange(failed(claim, "ValueError: no", None), None).accepted
    after = sql_queues.jobs.get(job)
    assert (after.state, after.error, after.error_count, after.crash_count) == (
        "error",
        "ValueError: no",
        1,
        0,
    )
    sql_queues.jobs.retry([job])
    assert sql_queues.claim().error_count == 0


def test_a_job_that_raised_is_retried_after_its_delay(sql_queues: Queues) -> None:
    job = sql_queues.add()
    sql_queues.claims().exchange(failed(sql_queues.claim(), "ValueError: no", 60.0), TAG)
    after = sql_queues.jobs.get(job)
    assert (after.state, after.error_count) == ("pending", 1)
    assert after.not_before_wall_ms > after.created_at_wall_ms + 50_000
    assert sql_queues.claim() is None


def test_queues_are_served_in_the_order_of_preference(sql_queues: Queues) -> None:
    library, tag = sql_queues.add("library"), sql_queues.add("tag")
    claims = sql_queues.claims()
    first = claims.exchange(None, ClaimRequest(("tag", "library"))).claim
    assert first is not None
    second = claims.exchange(finished(first, None), ClaimRequest(("tag", "library")))
    assert second.claim is not None
    assert (first.id, second.claim.id, second.accepted) == (tag, library, True)


def test_a_suspect_is_for_free_hands_and_holds_the_others_back(sql_queues: Queues) -> None:
    suspect = sql_queues.add()
    sql_queues.crash(suspect)
    sql_queues.add()
    sql_queues.add("library")
    claims = sql_queues.claims(generation=2)
    both = ("tag", "library")
    assert claims.exchange(None, ClaimRequest(both, free=False, isolate=True)).claim is None
    claim = claims.exchange(None, ClaimRequest(both, free=True, isolate=True)).claim
    assert claim is not None
    assert (claim.id, claim.alone) == (suspect, True)
    other = claims.exchange(None, ClaimRequest(both, free=False, isolate=True)).claim
    assert other is not None
    assert not other.alone


def test_a_suspect_is_convicted_by_the_last_death_alone_that_it_may_cause(sql_queues: Queues) -> None:
    job = sql_queues.add()
    sql_queues.crash(job)
    for generation, state in ((2, "pending"), (3, "toxic")):
        claim = sql_queues.claims(generation=generation).exchange(None, ClaimRequest(("tag",), isolate=True))
        assert claim.claim is not None
        assert claim.claim.alone
        sql_queues.end(generation=generation)
        assert sql_queues.jobs.get(job).state == state
    error = sql_queues.jobs.get(job).error
    assert error == "failed after 3 worker crashes, the last one while it ran alone"


def test_success_clears_a_suspect(sql_queues: Queues) -> None:
    job = sql_queues.add()
    sql_queues.crash(job, times=2)
    claims = sql_queues.claims(generation=3)
    claim = claims.exchange(None, ClaimRequest(("tag",), isolate=True)).claim
    assert claim is not None
    claims.exchange(finished(claim, None), None)
    assert (sql_queues.jobs.get(job).state, sql_queues.jobs.get(job).crash_count) == ("done", 0)


def test_a_claim_and_an_end_whose_answer_was_lost_are_found_again(sql_queues: Queues) -> None:
    first, second = sql_queues.add(), sql_queues.add()
    claims = sql_queues.claims()
    claim = sql_queues.claim()
    ending = finished(claim, None)
    assert not claims.was_recorded(ending)
    claims.exchange(ending, TAG)
    claims.close()
    assert claims.was_recorded(ending)
    assert [found.id for found in claims.mine()] == [second]
    assert claim.id == first


def test_a_job_that_raised_and_was_claimed_again_by_an_unanswered_claim_is_executed(
    sql_queues: Queues,
) -> None:
    """It lay in hand still when the new claim was looked for, and was taken for the old one."""
    job = sql_queues.add()
    claims, worker = sql_queues.claims(), cast("Worker", SimpleNamespace(current_job=None))
    hands = HeldJobs(worker, ("other", "tag"), isolate=False)
    first = hands.exchange(claims, None, more=True).claim
    assert first is not None
    ending = failed(first, "ValueError", 0.0)
    claims.exchange(ending, ClaimRequest(("other", "tag")))
    again = hands.resume(claims, ending, more=True).claim
    assert again is not None
    assert (again.id, again.attempt) == (job, first.attempt + 1)


def test_a_job_that_was_put_back_stays_in_the_hands_of_the_thread_that_has_it_now(
    sql_queues: Queues,
) -> None:
    """A thread that learned late of the former execution's end took it, and a third one executed it, too."""
    sql_queues.add()
    worker = cast("Worker", SimpleNamespace(current_job=None))
    hands = HeldJobs(worker, ("tag",), isolate=False)
    first, second, third = (sql_queues.claims() for _ in range(3))
    claim = hands.exchange(first, None, more=True).claim
    assert claim is not None
    ending = failed(claim, "ValueError", 0.0)
    first.exchange(ending, None)  # it is recorded, and the answer gets lost
    again = hands.exchange(second, None, more=True).claim
    assert again is not None
    assert again.execution == (claim.id, claim.attempt + 1)
    assert hands.resume(first, ending, more=True).claim is None
    assert worker.current_job == again.id
    assert hands.resume(third, None, more=True).claim is None


def has_open(pid: int, suffix: str) -> bool:
    """Whether a process has a file open whose name ends so."""
    found = []
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):  # the one that we look by
            found.append(os.readlink(each))
    return any(name.endswith(suffix) for name in found)


def test_a_turn_does_not_outlive_its_worker_in_a_fork(tmp_path: Path) -> None:
    open_store(tmp_path / "rekindle.db").close()
    claims = SqliteClaims(str(tmp_path / "rekindle.db"), Claimant(WORKER, 1, RUN))
    claims.exchange(None, TAG)
    child = os.fork()
    if child == 0:
        signal.pause()
    try:
        assert eventually(lambda: not has_open(child, TURN_SUFFIX))
        assert has_open(os.getpid(), TURN_SUFFIX)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        claims.close()


def test_precedence_over_workers_does_not_outlive_its_process_in_a_fork(tmp_path: Path) -> None:
    """It was taken for the length of a commit; a fork would have held it and blocked every worker."""
    store = open_store(tmp_path / "rekindle.db")
    store.commit([])
    assert has_open(os.getpid(), WANT_SUFFIX)
    child = os.fork()
    if child == 0:
        signal.pause()
    try:
        assert eventually(lambda: not has_open(child, WANT_SUFFIX))
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        store.close()


def test_a_worker_that_serves_a_queue_notices_that_its_file_was_removed(tmp_path: Path) -> None:
    """Results would be recorded in a file that has no name."""
    database = tmp_path / "rekindle.db"
    store = open_store(database)
    job, _ = store.jobs.add("tag", [NewJob(payload="1"), NewJob(payload="2")])
    claims = SqliteClaims(str(database), Claimant(WORKER, 1, RUN))
    claim = claims.exchange(None, TAG).claim
    assert claim is not None
    database.rename(tmp_path / "elsewhere.db")
    with pytest.raises(QueueUnavailableError, match="its file was removed"):
        claims.exchange(finished(claim, None), None)
    (tmp_path / "elsewhere.db").rename(database)
    assert claims.exchange(finished(claim, None), None).accepted
    assert store.jobs.get(job).state == "done"
    claims.close()
    store.close()


def test_a_checkpoint_is_handed_to_the_next_execution_and_removed_by_a_result(sql_queues: Queues) -> None:
    job, claims = sql_queues.add(), sql_queues.claims()
    claim = sql_queues.claim()
    assert claim.checkpoint is None
    assert claims.save(claim, '{"done":3}')
    sql_queues.end()
    again = sql_queues.claim(generation=2)
    assert (again.attempt, again.checkpoint) == (2, '{"done":3}')
    sql_queues.finish(again, "1", generation=2)
    assert sql_queues.jobs.get(job).checkpoint is None


def test_a_checkpoint_of_a_worker_that_was_considered_dead_is_refused(sql_queues: Queues) -> None:
    job = sql_queues.add()
    claim = sql_queues.claim()
    sql_queues.end()
    sql_queues.claim(generation=2)
    with suppress(QueueUnavailableError):  # PostgreSQL ended its session
        sql_queues.claims().mine()
    assert not sql_queues.claims().save(claim, "1")
    assert sql_queues.jobs.get(job).checkpoint is None


def test_a_job_that_was_not_begun_is_given_back(sql_queues: Queues) -> None:
    job = sql_queues.add()
    sql_queues.claims().exchange(given_back(sql_queues.claim()), None)
    assert (sql_queues.jobs.get(job).state, sql_queues.jobs.get(job).crash_count) == ("pending", 0)
    assert sql_queues.claim(generation=2).id == job


def test_an_invalid_payload_and_invalid_counts_do_not_stop_a_claim(sql_queues: Queues, rows: Engine) -> None:
    """JR-07: a hand-edited row is claimed like any other; its worker says what is wrong with it."""
    sql_queues.add()
    with rows.begin() as connection:
        connection.execute(text("UPDATE rekindle_job SET payload = 'not json', crash_count = -1"))
    assert sql_queues.claim().payload == "not json"


def test_a_missing_database_is_reported_as_unavailable(tmp_path: Path) -> None:
    claims = open_claims(str(tmp_path / "none.db"), Claimant("w", 1, "run"))
    with pytest.raises(QueueUnavailableError, match="unable to open"):
        claims.mine()
    claims.close()


def test_an_address_of_something_else_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^mysql:// names neither"):
        open_claims("mysql://host/db", Claimant("w", 1, "run"))


def test_the_turn_file_is_private(sql_queues: Queues, tmp_path: Path) -> None:
    sql_queues.claim()
    turns = list(tmp_path.rglob("*" + TURN_SUFFIX))
    assert [turn.stat().st_mode & 0o777 for turn in turns] in ([0o600], [])  # PostgreSQL has none


def test_jr_12_eight_processes_execute_every_job_once(sql_store: SqlStore) -> None:
    """Scaled by REKINDLE_JOBS; each job is claimed by exactly one, and every result is taken."""
    ids = sql_store.jobs.add("tag", [_empty()] * JOBS)
    assert sql_store.address is not None
    executed = claim_everything(sql_store.address, processes=8)
    assert Counter(executed) == Counter(ids)
    (stats,) = sql_store.jobs.stats()
    assert (stats.pending, stats.running, stats.completed) == (0, 0, JOBS)
    assert {job.attempts for job in sql_store.jobs.find(limit=JOBS)} == {1}


def _empty() -> NewJob:
    return NewJob(payload="null")


def test_a_claim_that_is_on_its_way_when_its_worker_is_released_is_not_made(
    postgres_url: str,
) -> None:
    """A killed process may have a statement with the server; carried out later, the job would be stuck."""
    store = open_store(postgres_url)
    queues = Queues(store)
    job = queues.add()
    address = store.address
    assert address is not None
    claims = open_claims(address, Claimant(WORKER, 1, RUN))
    ended: list[object] = []
    with psycopg.connect(postgres_url) as slow:
        slow.execute("LOCK TABLE rekindle_job IN SHARE MODE")
        claimer = threading.Thread(target=_claim, args=(claims, ended))
        claimer.start()
        waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%ended AS%'"
        with psycopg.connect(postgres_url, autocommit=True) as glance:
            assert eventually(lambda: glance.execute(waiting).fetchone())
        assert queues.end() == ()
    claimer.join()
    assert isinstance(ended[0], QueueUnavailableError)
    assert (queues.jobs.get(job).state, queues.jobs.get(job).attempts) == ("pending", 0)
    queues.close()
    store.close()


def _claim(claims: Claims, ended: list[object]) -> None:
    try:
        ended.append(claims.exchange(None, TAG))
    except QueueUnavailableError as error:
        ended.append(error)
    finally:
        claims.close()


def test_two_supervisors_in_two_schemas_of_one_database_leave_each_others_connections_alone(
    empty_postgres_url: str,
) -> None:
    stores = []
    with psycopg.connect(empty_postgres_url, autocommit=True) as connection:
        for schema in ("one", "two"):
            connection.execute(f"CREATE SCHEMA {schema}".encode())
            joined = "&" if "?" in empty_postgres_url else "?"
            stores.append(open_store(f"{empty_postgres_url}{joined}options=-csearch_path%3D{schema}"))
        one, two = map(Queues, stores)
        for queues in (one, two):
            queues.add()
            claim = queues.claim()
        assert claim is not None
        one.end(counted=False)
        one.start_next_run()
        sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'rekindle-job %'"
        assert connection.execute(sessions.encode()).fetchone() == (1,)
        assert two.claims().exchange(finished(claim, "1"), None).accepted
    for queues in (one, two):
        queues.close()
        queues.store.close()
