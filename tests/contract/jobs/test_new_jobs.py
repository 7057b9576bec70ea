"""Settings of single jobs: unique ones, and their retries after crashes."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.contract.queues import Queues

from rekindle.actors.errors import PayloadError
from rekindle.actors.facts.jobs import SERVED_QUEUES, Unique
from rekindle.actors.facts.records import MetaSet
from rekindle.actors.spec.job_payload import new_job, new_jobs
from rekindle.persistence import open_queue
from rekindle.persistence.store import SqlStore

SONG = Unique("song.mp3", 3600)
HOUR = Unique(for_s=3600)


def test_a_unique_job_is_added_once(queues: Queues) -> None:
    first = queues.add(unique=SONG)
    assert queues.add(unique=SONG) == first
    assert queues.add(unique=Unique("other.mp3", 3600)) != first
    assert len(queues.jobs.find()) == 2


def test_a_unique_job_of_another_queue_is_another_one(queues: Queues) -> None:
    assert queues.add("tag", unique=SONG) != queues.add("mail", unique=SONG)


def test_the_jobs_of_traces_are_found_by_their_ends_a_page_at_a_time(queues: Queues) -> None:
    trace = f"00-{'a' * 32}-{'b' * 16}-01"
    jobs = queues.jobs.add("tag", new_jobs(range(5), 0, traceparent=trace))
    plain = queues.add()
    queues.jobs.cancel([plain, *jobs[:4]])
    first = queues.jobs.traced((0, 0), limit=3)
    assert [(job.id, job.traceparent) for job in first] == [(job, trace) for job in jobs[:3]]
    last = first[-1]
    assert last.finished_at_wall_ms is not None
    rest = queues.jobs.traced((last.finished_at_wall_ms, last.id), limit=3)
    assert [job.id for job in rest] == [jobs[3]]


def test_unique_jobs_of_one_transaction_are_the_same(queues: Queues) -> None:
    job = new_job("1", 0, unique=SONG)
    first, second = queues.jobs.add("tag", [job, job])
    assert first == second


def test_without_a_key_jobs_with_equal_payloads_are_the_same(queues: Queues) -> None:
    jobs = new_jobs([{"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1}], 0, unique=HOUR)
    first, same, other = queues.jobs.add("tag", jobs)
    assert first == same != other
    (again,) = queues.jobs.add("tag", new_jobs([{"a": 1}], 0, unique=HOUR))
    assert again == other


def test_of_many_unique_jobs_those_that_are_there_already_are_not_added(queues: Queues) -> None:
    before = queues.jobs.add("tag", new_jobs(range(0, 1200, 2), 0, unique=HOUR))
    after = queues.jobs.add("tag", new_jobs([*range(1200), *range(1200)], 0, unique=HOUR))
    assert (after[0:1200:2], after[:1200]) == (before, after[1200:])
    assert len(set(after)) == 1200
    assert [job.payload for job in queues.jobs.named(sorted(set(after) - set(before)))[:3]] == ["1", "3", "5"]


def test_several_jobs_with_one_key_are_refused(queues: Queues) -> None:
    with pytest.raises(
        PayloadError, match=r"2 jobs cannot share the key 'song\.mp3', only one of them would"
    ):
        new_jobs([1, 2], 0, unique=SONG)
    assert queues.jobs.find() == ()


def test_a_unique_job_may_be_added_again_when_its_state_no_longer_stands_in_the_way(queues: Queues) -> None:
    waiting = Unique("song.mp3", 3600, states=("pending",))
    first = queues.add(unique=waiting)
    queues.claim()
    assert queues.add(unique=waiting) != first


def test_a_unique_job_may_be_added_again_when_its_time_is_over(queues: Queues) -> None:
    first = queues.add(unique=SONG)
    assert queues.add(unique=Unique("song.mp3", 1e-9)) != first


def test_the_retries_of_a_job_after_a_crash_win_over_the_worker_s(queues: Queues) -> None:
    job = queues.add(crash_retries=0)
    queues.crash(job)
    assert (queues.jobs.get(job).state, queues.jobs.get(job).crash_retries) == ("toxic", 0)


@pytest.mark.parametrize(
    ("unique", "why"),
    [
        (Unique("song.mp3", 0), "needs a period for_s of more than 0 s"),
        (Unique("song.mp3"), "needs a period for_s of more than 0 s"),
        (Unique("", 60), "must be a text of 1 to 200 characters"),
        (Unique("song.mp3", 60, states=("sleeping",)), "states of a unique job must be some of pending"),
        ("song.mp3", r"must be a Unique\(key, for_s\)"),
    ],
)
def test_a_unique_job_that_makes_no_sense_is_refused(unique: Unique, why: str) -> None:
    with pytest.raises(PayloadError, match=why):
        new_job("1", 0, unique=unique)


def test_a_unique_job_that_many_programs_add_at_the_same_time_is_added_once(sql_store: SqlStore) -> None:
    sql_store.commit([MetaSet(SERVED_QUEUES, '["tag"]')])
    assert sql_store.address is not None
    programs = [open_queue(sql_store.address) for _ in range(8)]
    barrier, ids = threading.Barrier(len(programs)), []

    def add(number: int) -> None:
        barrier.wait()
        ids.append(programs[number].enqueue("tag", number, unique=SONG))

    threads = [threading.Thread(target=add, args=(number,)) for number in range(len(programs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(ids), len(set(ids)), len(sql_store.jobs.find())) == (8, 1, 1)
    for program in programs:
        program.close()


def test_unique_jobs_that_some_programs_add_at_once_and_some_one_by_one_are_added_once(
    sql_store: SqlStore,
) -> None:
    assert sql_store.address is not None
    jobs = new_jobs(range(40), 0, unique=HOUR)
    programs = [open_queue(sql_store.address) for _ in range(4)]
    barrier, errors = threading.Barrier(len(programs)), []

    def add(number: int) -> None:
        barrier.wait()
        try:
            for begin in range(0, len(jobs), 1 if number % 2 else len(jobs)):
                programs[number].add("tag", jobs[begin : begin + 1] if number % 2 else jobs)
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=add, args=(number,)) for number in range(len(programs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (errors, len(sql_store.jobs.find(limit=200))) == ([], 40)
    for program in programs:
        program.close()


PAST = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"timeout_s": 0}, "timeout_s must be at least 0.001"),
        ({"timeout_s": -1}, "timeout_s must be at least 0.001"),
        ({"timeout_s": "5"}, "timeout_s must be at least 0.001"),
        ({"retry_delay_s": -0.5}, "retry_delay_s must be from 0"),
        ({"max_retry_delay_s": float("nan")}, "max_retry_delay_s must be from 0"),
        ({"error_retries": -1}, "error_retries must be an integer of at least 0"),
        ({"error_retries": 1, "max_retries": 2}, "are the same setting"),
        ({"expires_in_s": 0}, "expires_in_s must be at least 0.001"),
        ({"expires_in_s": 5, "expires_at": PAST}, "not both"),
        ({"expires_at": PAST}, "expires_at is in the past"),
        ({"expires_at": datetime(2090, 1, 1)}, "a datetime with a time zone"),  # noqa: DTZ001
        ({"expires_in_s": 5, "delay_s": 10}, "expires before its delay_s is over"),
    ],
)
def test_a_bad_setting_of_a_job_is_refused_before_anything_is_stored(
    settings: dict[str, Any], why: str
) -> None:
    with pytest.raises(PayloadError, match=why):
        new_job("{}", 1_790_000_000_000, **settings)


def test_an_unknown_setting_of_a_job_is_refused() -> None:
    unknown: dict[str, Any] = {"timeout": 5}
    with pytest.raises(TypeError, match="a job has no setting timeout"):
        new_job("{}", 0, **unknown)


def test_the_settings_of_a_job_in_the_units_of_the_store() -> None:
    job = new_job("{}", 1000, timeout_s=1.5, error_retries=3, retry_delay_s=0.25, expires_in_s=60)
    assert (job.timeout_ms, job.max_retries, job.retry_delay_ms, job.expires_at_wall_ms) == (
        1500,
        3,
        250,
        61_000,
    )
    assert new_job("{}", 0, max_retries=3).max_retries == 3
