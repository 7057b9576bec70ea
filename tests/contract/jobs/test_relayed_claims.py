"""Jobs that a worker exchanges through its supervisor: the same fences, whatever the worker says."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from tests.contract.queues import Queues
from tests.processes.waiting import eventually

from rekindle.actors import JobPolicy, PythonCall, WorkerSpec
from rekindle.actors.facts.records import MetaSet
from rekindle.actors.processes.claims import claim_lane
from rekindle.actors.processes.claims.claim_desk import ClaimDesk
from rekindle.persistence.store import SqlStore
from rekindle.worker.jobs.claims import (
    Claim,
    Claimant,
    ClaimRequest,
    Claims,
    Ending,
    Exchanged,
    QueueUnavailableError,
    Taken,
    cancelled,
    failed,
    finished,
    given_back,
)
from rekindle.worker.jobs.queue_address import open_claims
from rekindle.worker.jobs.relayed import wire

RUN = "run"
TAG = ClaimRequest(("tag",))

Relay = Callable[..., Claims]


@pytest.fixture
def queues(sql_store: SqlStore) -> Queues:
    return Queues(sql_store)


@pytest.fixture
def desk(sql_store: SqlStore) -> Iterator[ClaimDesk]:
    desk = ClaimDesk(sql_store, RUN)
    yield desk
    desk.close()
    assert eventually(lambda: not any("claim" in thread.name for thread in threading.enumerate()))


def address(desk: ClaimDesk, id_: str, generation: int = 1) -> str:
    """What a process of such a worker is given."""
    policy = JobPolicy(queues=("tag",), via="supervisor")
    return desk.address(WorkerSpec(id_, PythonCall("app:main"), jobs=policy), generation)


@pytest.fixture
def relay(desk: ClaimDesk, sql_store: SqlStore) -> Iterator[Relay]:
    """Opens the claims of a worker; its own words about itself are those of another one."""
    sql_store.commit([MetaSet("system_mark", RUN)])
    opened: list[Claims] = []

    def relay(id_: str = "w:0", generation: int = 1) -> Claims:
        liar = Claimant("w:other", 99, "another run", supervised=False)
        opened.append(open_claims(address(desk, id_, generation), liar))
        return opened[-1]

    yield relay
    for claims in opened:
        claims.close()


def claimed(claims: Claims) -> Claim:
    claim = claims.exchange(None, TAG).claim
    assert claim is not None
    return claim


def test_a_worker_claims_saves_and_ends_jobs_as_the_worker_that_it_is(queues: Queues, relay: Relay) -> None:
    first, second = queues.add(payload='{"a": 1}'), queues.add()
    claims = relay()
    claim = claimed(claims)
    assert (claim.id, claim.payload, claim.attempt) == (first, '{"a": 1}', 1)
    assert queues.jobs.get(first).claimed_by == "w:0"
    assert claims.mine() == (claim,)
    assert claims.save(claim, '{"step": 3}')
    exchanged = claims.exchange(finished(claim, '{"b": 2}'), TAG)
    assert exchanged.accepted
    assert exchanged.claim is not None
    assert exchanged.claim.id == second
    assert queues.jobs.get(first).result == '{"b": 2}'
    assert claims.was_recorded(finished(claim, None))
    assert claims.exchange(failed(exchanged.claim, "no", 0.0), None).accepted
    assert claimed(claims).error_count == 1


def test_a_job_that_is_cancelled_is_refused_through_the_supervisor_too(queues: Queues, relay: Relay) -> None:
    job = queues.add(timeout_ms=5000)
    claims = relay()
    claim = claimed(claims)
    assert claim.timeout_ms == 5000
    assert claims.show(claim, '{"done": 1}')
    queues.jobs.cancel([job])
    assert not claims.show(claim, '{"done": 2}')
    assert not claims.save(claim, "1")
    assert claims.exchange(cancelled(claim), None).accepted
    assert queues.jobs.get(job).state == "cancelled"


def test_a_worker_that_waits_is_woken_by_a_new_job_and_by_its_own_request(
    queues: Queues, relay: Relay
) -> None:
    claims, interruption = relay(), os.eventfd(0)
    waits = threading.Thread(target=claims.idle, args=(("tag",), 30.0, interruption))
    waits.start()
    queues.add()
    waits.join(20.0)
    assert not waits.is_alive()
    claim = claimed(claims)
    os.eventfd_write(interruption, 1)
    claims.idle(("tag",), 30.0, interruption)
    assert claims.exchange(finished(claim, None), None).accepted
    os.close(interruption)


def test_a_worker_cannot_end_or_save_the_job_of_another_one(queues: Queues, relay: Relay) -> None:
    job = queues.add()
    claim = claimed(relay("w:0"))
    for stranger in (relay("w:1"), relay("w:0", 2)):
        for ending in (finished(claim, "1"), failed(claim, "no", None), given_back(claim)):
            assert stranger.exchange(ending, None).accepted is False
        assert stranger.save(claim, "1") is False
        assert stranger.mine() == ()
    assert queues.jobs.get(job).state == "running"


CLAIM = {"id": 1, "attempt": 1, "queue": "tag"}


@pytest.mark.parametrize(
    "request_",
    [
        {"do": "exchange", "ending": None, "request": {"queues": ["other"], "free": True, "isolate": False}},
        {"do": "idle", "queues": ["../other"], "longest_s": 1},
        {"do": "exchange", "ending": {"claim": CLAIM, "how": "DELETE", "state": "", "values": {}}},
        {"do": "save", "claim": CLAIM, "text": "not json"},
        {"do": "save", "claim": CLAIM, "text": '"' + "x" * 1_000_001 + '"'},
        {"do": "save", "claim": {**CLAIM, "id": 2**70}, "text": "1"},
        {"do": "drop"},
        ["exchange"],
        "x" * 4096,
    ],
)
def test_what_no_worker_may_ask_ends_its_connection(desk: ClaimDesk, request_: object) -> None:
    path, _, token = address(desk, "w:0").removeprefix("rekindle-claims://").partition("#")
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(20.0)
        line.connect(path)
        wire.send(line, {"token": token})
        wire.send(line, request_)
        assert line.recv(1) == b""


@pytest.mark.parametrize("hello", [{"token": "x"}, {"token": 3}, [], "x" * 5000])
def test_a_connection_without_a_token_is_closed(desk: ClaimDesk, hello: object) -> None:
    path = address(desk, "w:0").removeprefix("rekindle-claims://").partition("#")[0]
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(20.0)
        line.connect(path)
        wire.send(line, hello)
        with suppress(ConnectionResetError):  # if it said more than is read
            assert line.recv(1) == b""


def test_a_worker_has_as_many_connections_as_it_needs_and_no_more(desk: ClaimDesk) -> None:
    own = address(desk, "w:0")
    lanes = [open_claims(own, Claimant("w:0", 1, RUN)) for _ in range(6)]
    assert [lane.mine() for lane in lanes[:5]] == [()] * 5
    with pytest.raises(QueueUnavailableError):
        lanes[5].mine()
    for lane in lanes:
        lane.close()


def test_a_worker_that_asks_without_end_is_slowed_down(
    queues: Queues, relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claim_lane, "BURST", 5.0)
    monkeypatch.setattr(claim_lane, "REQUESTS_A_SECOND", 20.0)
    flood, calm = relay("w:0"), relay("w:1")
    began = time.monotonic()
    for _ in range(15):
        flood.mine()
    assert time.monotonic() - began > 0.4
    queues.add()
    assert claimed(calm).attempt == 1


def test_nothing_is_claimed_for_a_worker_that_has_ended(
    queues: Queues, desk: ClaimDesk, relay: Relay
) -> None:
    job = queues.add()
    claims = relay()
    assert claims.mine() == ()
    desk.revoke("w:0", 1)
    for _ in range(2):  # also not over a new connection
        with pytest.raises(QueueUnavailableError):
            claims.exchange(None, TAG)
    assert queues.jobs.get(job).state == "pending"


def test_a_job_that_is_claimed_while_its_worker_ends_is_given_back(
    queues: Queues, desk: ClaimDesk, relay: Relay, sql_store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The claims of the worker are released before the claim is committed: it would be held forever."""
    job = queues.add()
    opened = sql_store.open_claims
    monkeypatch.setattr(sql_store, "open_claims", lambda who: EndsMeanwhile(opened(who), desk))
    with pytest.raises(QueueUnavailableError):
        relay().exchange(None, TAG)
    given_back = ("pending", 1)
    assert eventually(lambda: (queues.jobs.get(job).state, queues.jobs.get(job).attempts) == given_back)


class EndsMeanwhile:
    """Claims of a worker whose end is noticed while it claims."""

    def __init__(self, claims: Claims, desk: ClaimDesk) -> None:
        self._claims = claims
        self._desk = desk

    def exchange(self, ending: Ending | None, request: ClaimRequest | None) -> Exchanged:
        if request is not None:
            self._desk.revoke("w:0", 1)
        return self._claims.exchange(ending, request)

    def close(self) -> None:
        self._claims.close()


def test_a_job_of_another_queue_is_taken_again_until_it_is_toxic(
    queues: Queues, relay: Relay, desk: ClaimDesk
) -> None:
    for generation in (1, 2, 3):
        taken = relay("w:0", generation).take("tag", "task-1", '{"about": "x"}')
        assert (taken.state, taken.claim and taken.claim.attempt) == ("running", generation)
        assert relay("w:1").take("tag", "task-1", "{}").claim is None  # it is executed elsewhere
        queues.end("w:0", generation, crash_retries=2)
    assert relay("w:0", 4).take("tag", "task-1", "{}") == Taken("toxic")
    queues.jobs.retry([job.id for job in queues.jobs.find(state="toxic")])
    claims = relay("w:0", 5)
    again = claims.take("tag", "task-1", "{}").claim
    assert again is not None
    assert claims.exchange(finished(again, None), None).accepted
    assert claims.take("tag", "task-1", "{}").claim is not None  # as a queue that retries a task does
    with pytest.raises(QueueUnavailableError):
        claims.take("other", "task-1", "{}")
