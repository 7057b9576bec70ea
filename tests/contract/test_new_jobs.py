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
from rekindle.actors.spec.job_payload import new_job
from rekindle.persistence.store import SqlStore

SONG = Unique("song.mp3", 3600)


def test_a_unique_job_is_added_once(queues: Queues) -> None:
    first = queues.add(unique=SONG)
    assert queues.add(unique=SONG) == first
    assert queues.add(unique=Unique("other.mp3", 3600)) != first
    assert len(queues.jobs.find()) == 2


def test_a_unique_job_of_another_queue_is_another_one(queues: Queues) -> None:
    assert queues.add("tag", unique=SONG) != queues.add("mail", unique=SONG)


def test_unique_jobs_of_one_transaction_are_the_same(queues: Queues) -> None:
    job = new_job("1", 0, unique=SONG)
    first, second = queues.jobs.add("tag", [job, job])
    assert first == second


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
        (Unique("song.mp3", 0), "needs a period of more than 0 seconds"),
        (Unique("", 60), "must be a text of 1 to 200 characters"),
        (Unique("song.mp3", 60, states=("sleeping",)), "states of a unique job must be some of pending"),
        ("song.mp3", r"must be a Unique\(key, for_s\)"),
    ],
)
def test_a_unique_job_that_makes_no_sense_is_refused(unique: Unique, why: str) -> None:
    with pytest.raises(PayloadError, match=why):
        new_job("1", 0, unique=unique)


def test_a_unique_job_that_many_programs_add_at_the_same_time_is_added_once(sql_store: SqlStore) -> None:
    from rekindle.persistence import open_queue

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
