"""Jobs that a worker without the address of the database adds through its supervisor."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from tests.contract.queues import Queues
from tests.processes.waiting import eventually

from rekindle.actors import JobPolicy, PythonCall, SpecError, StoreUnavailableError, WorkerSpec
from rekindle.actors.facts.jobs import SERVED_QUEUES, NewJob
from rekindle.actors.facts.jobs import Unique as UniqueOfActors
from rekindle.actors.facts.records import MetaSet
from rekindle.actors.handover import Estate, Inheritance
from rekindle.actors.handover.document import HandOver
from rekindle.actors.processes.claims import claim_lane
from rekindle.actors.processes.claims.claim_desk import ClaimDesk, KnownClaims
from rekindle.persistence.store import SqlStore
from rekindle.worker.jobs import JobRefusedError, Unique
from rekindle.worker.jobs.relayed import wire
from rekindle.worker.jobs.relayed.relay_queue import RelayQueue

RUN = "run"

Opened = Callable[..., RelayQueue]


@pytest.fixture
def queues(sql_store: SqlStore) -> Queues:
    sql_store.commit([MetaSet("system_mark", RUN), MetaSet(SERVED_QUEUES, '["tag", "index", "secret"]')])
    return Queues(sql_store)


@pytest.fixture
def desk(sql_store: SqlStore) -> Iterator[ClaimDesk]:
    desk = ClaimDesk(sql_store, RUN)
    yield desk
    desk.close()
    assert eventually(lambda: not any("claim" in thread.name for thread in threading.enumerate()))


def address(desk: ClaimDesk) -> str:
    """What a process of a worker is given that serves one queue and may use another."""
    policy = JobPolicy(queues=("tag",), enqueues=("index",), via="supervisor")
    return desk.address(WorkerSpec("w:0", PythonCall("app:main"), jobs=policy), 1)


@pytest.fixture
def opened(desk: ClaimDesk) -> Iterator[Opened]:
    all_of_them: list[RelayQueue] = []

    def opened(at: str | None = None) -> RelayQueue:
        all_of_them.append(RelayQueue(at or address(desk), 1))
        return all_of_them[-1]

    yield opened
    for each in all_of_them:
        each.close()


def test_jobs_are_added_with_the_settings_that_other_programs_have(queues: Queues, opened: Opened) -> None:
    queue, soon = opened(), datetime.now(UTC) + timedelta(hours=1)
    (first,) = queue.enqueue_many("tag", [{"a": 1}], {})
    (second,) = queue.enqueue_many(
        "index",
        [["x"]],
        {
            "priority": -3,
            "delay_s": 60,
            "error_retries": 2,
            "retry_delay_s": 0.5,
            "max_retry_delay_s": 9,
            "crash_retries": 1,
            "timeout_s": 1.5,
            "expires_at": soon,
            "key": "customer-7",
            "after": [first],
            "traceparent": f"00-{'1' * 32}-{'2' * 16}-01",
        },
    )
    job = queues.jobs.get(first)
    assert (job.state, job.payload, job.traceparent) == ("pending", '{"a":1}', None)
    job = queues.jobs.get(second)
    assert (job.state, job.queue, job.priority, job.waits_for) == ("waiting", "index", -3, 1)
    assert (job.max_retries, job.retry_delay_ms, job.max_retry_delay_ms) == (2, 500, 9000)
    assert (job.crash_retries, job.timeout_ms, job.key) == (1, 1500, "customer-7")
    assert job.expires_at_wall_ms == round(soon.timestamp() * 1000)
    assert job.traceparent is not None


@pytest.mark.parametrize("unique", [Unique("song", 60), UniqueOfActors("song", 60)])
def test_a_unique_job_is_added_once(queues: Queues, opened: Opened, unique: Unique) -> None:
    queue = opened()
    (first,) = queue.enqueue_many("tag", [1], {"unique": unique})
    assert queue.enqueue_many("tag", [2], {"unique": unique}) == (first,)
    same = queue.enqueue_many("tag", [{"b": 1}, {"b": 1}, {"b": 2}], {"unique": Unique(for_s=60)})
    assert same[0] == same[1] != same[2]


def test_ten_thousand_jobs_are_added_in_one_transaction_and_no_more(queues: Queues, opened: Opened) -> None:
    queue = opened()
    assert len(queue.enqueue_many("tag", range(wire.MOST_JOBS), {})) == wire.MOST_JOBS
    with pytest.raises(JobRefusedError, match="10001 jobs are too many for one request"):
        queue.enqueue_many("tag", range(wire.MOST_JOBS + 1), {})
    with pytest.raises(JobRefusedError, match="add them in parts"):
        queue.enqueue_many("tag", ["x" * 900_000] * 20, {})
    (stats,) = queues.jobs.stats()
    assert stats.pending == wire.MOST_JOBS


@pytest.mark.parametrize(
    ("where", "payload", "settings", "reason"),
    [
        ("secret", 1, {}, "may not put jobs into the queue 'secret', only into index, tag"),
        ("tag", object(), {}, "is not JSON"),
        ("tag", float("nan"), {}, "is not JSON"),
        ("tag", "x" * 1_000_001, {}, "the payload is too long"),
        ("tag", 1, {"unique": Unique("song")}, "needs a period for_s of more than 0 s"),
        ("tag", 1, {"unique": Unique("song", 60, ("sleeping",))}, "the states of a unique job must be some"),
        ("tag", 1, {"priority": "high"}, "is not valid: Expected `int`"),
        ("tag", 1, {"colour": "red"}, "unknown field `colour`"),
        ("tag", 1, {"after": [999]}, "there is no job 999"),
        ("tag", 1, {"timeout_s": -1}, "timeout_s must be"),
        ("tag", 1, {"expires_at": datetime(2020, 1, 1, tzinfo=UTC)}, "expires_at is in the past"),
        (
            "tag",
            1,
            {"expires_at": datetime.fromisoformat("2040-01-01")},
            "is not valid: Expected `datetime` with a timezone",
        ),
    ],
)
def test_what_is_wrong_is_refused_in_the_worker_which_goes_on(
    queues: Queues, opened: Opened, where: str, payload: object, settings: object, reason: str
) -> None:
    queue = opened()
    with pytest.raises(JobRefusedError, match=reason):
        queue.enqueue_many(where, [payload], settings)  # type: ignore[arg-type]
    with pytest.raises(JobRefusedError, match="a list of payloads is needed"):
        queue.enqueue_many(where, "one", {})
    assert len(queue.enqueue_many("tag", [1], {})) == 1


def test_jobs_of_queues_that_the_worker_may_not_use_do_not_exist_for_it(
    queues: Queues, opened: Opened
) -> None:
    (secret,) = queues.jobs.add("secret", [NewJob(payload="{}")])
    with pytest.raises(JobRefusedError, match=f"there is no job {secret}"):
        opened().enqueue_many("tag", [1], {"after": [secret]})


def test_a_worker_that_has_ended_adds_nothing(queues: Queues, desk: ClaimDesk, opened: Opened) -> None:
    queue = opened()
    queue.enqueue_many("tag", [1], {})
    desk.revoke("w:0", 1)
    for _ in range(2):
        with pytest.raises(ConnectionError):
            queue.enqueue_many("tag", [1], {})
    assert len(queues.jobs.find()) == 1


def test_a_database_that_is_away_is_an_error_of_the_job_and_the_next_one_may_succeed(
    queues: Queues, opened: Opened, sql_store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object, **__: object) -> tuple[int, ...]:
        raise StoreUnavailableError("the disk is full")

    queue = opened()
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(sql_store.jobs, "enqueue_many", away)
        with pytest.raises(ConnectionError, match="the disk is full"):
            queue.enqueue_many("tag", [1], {})
    assert len(queue.enqueue_many("tag", [1], {})) == 1


def test_a_worker_that_adds_jobs_without_end_is_slowed_down_and_still_claims(
    queues: Queues, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "MOST_JOBS", 10)
    monkeypatch.setattr(claim_lane, "JOBS_A_SECOND", 20.0)
    queue = opened()
    began = time.monotonic()
    for _ in range(2):
        queue.enqueue_many("tag", range(10), {})
    assert time.monotonic() - began > 0.4


def test_the_right_to_add_jobs_goes_over_in_an_upgrade(desk: ClaimDesk) -> None:
    token, estate = address(desk).partition("#")[2], Estate()
    desk.leave(estate)
    document = HandOver(format=1, version="1", number=1, at=0.0, back=(), parts=estate.parts)
    known = Inheritance(document).look("claims", KnownClaims)
    assert known is not None
    assert known.badges[token].enqueues == ("index",)


def test_only_a_worker_that_goes_through_the_supervisor_names_queues_to_add_to() -> None:
    with pytest.raises(SpecError, match='enqueues: is for workers with via = "supervisor"'):
        JobPolicy(queues=("tag",), enqueues=("index",))
    with pytest.raises(SpecError, match="is not a queue name"):
        JobPolicy(queues=("tag",), enqueues=("a b",), via="supervisor")
