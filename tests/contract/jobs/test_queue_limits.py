"""Limits of queues, over every implementation of the port: exact for what runs at a time."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import Counter
from typing import Any

import pytest
from tests.contract.jobs.test_queue_pauses import idle_for_s
from tests.contract.queues import Queues, new
from tests.processes.waiting import PATIENCE_S, eventually

from rekindle.actors.facts.jobs import SERVED_QUEUES
from rekindle.actors.facts.queues import QueueLimits, Rate
from rekindle.actors.facts.records import MetaSet
from rekindle.worker.jobs.claims import Claimant, ClaimRequest, Claims, finished, given_back
from rekindle.worker.jobs.limits import limit_sql
from rekindle.worker.jobs.queue_address import open_claims

HOUR_MS = 3_600_000
TAG = ClaimRequest(("tag",))


def limit(queues: Queues, **limits: Any) -> None:
    queues.jobs.set_limits([QueueLimits(queue="tag", **limits)])


def add(queues: Queues, *keys: str | None) -> list[int]:
    return [queues.add(key=key) for key in keys]


def test_no_more_jobs_run_at_a_time_than_the_queue_allows(queues: Queues) -> None:
    limit(queues, concurrency=2)
    add(queues, None, None, None)
    first, second = queues.claim(), queues.claim()
    assert queues.claim() is None
    assert queues.finish(first)
    third = queues.claim()
    assert third.id not in (first.id, second.id)


def test_the_death_of_a_worker_frees_its_slots(queues: Queues) -> None:
    limit(queues, concurrency=1)
    job, _ = add(queues, None, None)
    assert queues.claim().id == job
    assert queues.claim(generation=2) is None
    queues.end()
    assert queues.claim(generation=2).id == job


def test_other_queues_are_not_limited_and_limits_can_be_lifted(queues: Queues) -> None:
    limit(queues, concurrency=1)
    add(queues, None, None)
    queues.add("mail")
    queues.claim()
    assert queues.claim("mail") is not None
    queues.jobs.set_limits([])
    assert queues.jobs.limits() == ()
    assert queues.claim() is not None


def test_a_rate_lets_a_bucket_of_jobs_start_and_then_one_for_each_token(queues: Queues) -> None:
    limit(queues, rate=Rate(2, HOUR_MS))
    add(queues, None, None, None)
    assert queues.finish(queues.claim())
    assert queues.finish(queues.claim())
    assert queues.claim() is None
    limit(queues, rate=Rate(10, 500))
    assert eventually(lambda: queues.claim(), PATIENCE_S)


@pytest.mark.parametrize("rate", ["rate", "key_rate"])
def test_a_clock_that_is_set_back_does_not_hold_jobs_back_for_that_long(
    queues: Queues, rate: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(queues, **{rate: Rate(1, HOUR_MS)})
    add(queues, "a", "a", "a")
    ahead_ms = time.time_ns() // 1_000_000 + 24 * HOUR_MS
    with monkeypatch.context() as patch:
        set_clock(queues, patch, ahead_ms)
        assert queues.claim() is not None
        assert queues.claim() is None
    assert queues.claim() is not None
    assert queues.claim() is None  # from then on the rate holds again


def set_clock(queues: Queues, patch: pytest.MonkeyPatch, wall_ms: int) -> None:
    """Have the workers see another time."""
    if hasattr(queues.jobs, "wall_ms"):
        patch.setattr(queues.jobs, "wall_ms", lambda: wall_ms)
    for module in ("claims", "limits.limited_claims"):
        patch.setattr(f"rekindle.worker.jobs.{module}.now_wall_ms", lambda: wall_ms)


def test_jobs_behind_a_key_at_its_limit_do_not_wait_for_it(queues: Queues) -> None:
    limit(queues, key_concurrency=1)
    first, second, other, without = add(queues, "a", "a", "b", None)
    claims = [queues.claim(), queues.claim(), queues.claim()]
    assert [claim.id for claim in claims] == [first, other, without]
    assert queues.claim() is None
    queues.finish(claims[0])
    assert queues.claim().id == second


def test_a_rate_of_a_key_holds_that_key_back_only(queues: Queues) -> None:
    limit(queues, key_rate=Rate(1, HOUR_MS))
    first, _, other = add(queues, "a", "a", "b")
    assert queues.finish(queues.claim())
    assert queues.claim().id == other
    assert queues.claim() is None
    assert queues.jobs.get(first).state == "done"


def test_both_limits_hold_together(queues: Queues) -> None:
    limit(queues, concurrency=2, key_concurrency=1)
    add(queues, "a", "b", "c")
    assert queues.claim() is not None
    assert queues.claim() is not None
    assert queues.claim() is None


def test_a_paused_queue_with_limits_starts_nothing(sql_queues: Queues) -> None:
    sql_queues.store.commit([MetaSet(SERVED_QUEUES, '["tag"]')])
    limit(sql_queues, key_concurrency=1)
    add(sql_queues, "a", None)
    sql_queues.jobs.pause("tag")
    assert sql_queues.claim() is None
    sql_queues.jobs.resume("tag")
    assert sql_queues.claim() is not None


def test_a_suspect_waits_for_a_free_worker_in_a_queue_with_limits_too(sql_queues: Queues) -> None:
    job = sql_queues.add()
    sql_queues.crash(job)
    limit(sql_queues, concurrency=5)
    busy = ClaimRequest(("tag",), free=False, isolate=True)
    assert sql_queues.claims(generation=9).exchange(None, busy).held_back
    claim = sql_queues.claims(generation=9).exchange(None, ClaimRequest(("tag",), isolate=True)).claim
    assert claim is not None
    assert claim.alone


@pytest.mark.parametrize("keys", [1, 300])
def test_many_jobs_of_keys_at_their_limits_are_passed_over(sql_queues: Queues, keys: int) -> None:
    limit(sql_queues, key_concurrency=1)
    blocked = [str(number) for number in range(keys)]
    sql_queues.jobs.add("tag", [new(key=key) for key in blocked])
    for _ in blocked:
        assert sql_queues.claim() is not None
    sql_queues.jobs.add("tag", [new(key=key) for key in blocked for _ in range(600 // keys)])
    other = sql_queues.add(key="other")
    without = sql_queues.add()
    assert [sql_queues.claim().id, sql_queues.claim().id] == [other, without]
    assert sql_queues.claim() is None


def test_a_waiting_worker_is_woken_when_a_slot_is_free(sql_queues: Queues) -> None:
    limit(sql_queues, concurrency=1)
    add(sql_queues, None, None)
    other = sql_queues.claims(generation=2)
    claim = other.exchange(None, TAG).claim
    assert claim is not None
    assert idle_for_s(sql_queues, 0.3) >= 0.25
    end = threading.Timer(0.2, lambda: other.exchange(finished(claim, None), None))
    end.start()
    assert idle_for_s(sql_queues) < PATIENCE_S
    end.join()
    assert sql_queues.claim() is not None


def test_a_waiting_worker_is_woken_when_a_token_is_due(sql_queues: Queues) -> None:
    limit(sql_queues, rate=Rate(1, 700), key_rate=Rate(1, 400))
    add(sql_queues, "a", "a")
    sql_queues.claim()
    assert sql_queues.claim() is None
    assert 0.2 < idle_for_s(sql_queues) < PATIENCE_S
    assert sql_queues.claim() is not None


def test_a_waiting_worker_is_woken_when_a_token_of_a_key_is_due(sql_queues: Queues) -> None:
    limit(sql_queues, key_rate=Rate(1, 500))
    add(sql_queues, "a", "a")
    sql_queues.claim()
    assert 0.1 < idle_for_s(sql_queues) < PATIENCE_S
    assert sql_queues.claim() is not None


def test_a_claim_of_a_limited_queue_does_not_read_the_jobs_that_ended(sql_queues: Queues) -> None:
    address = sql_queues.store.address or ""
    if not address.startswith("sqlite"):
        return  # PostgreSQL chooses by its statistics
    plan = plan_of(address, limit_sql.RUNNING)
    assert "ix_rekindle_job_running" in plan


def plan_of(address: str, statement: str) -> str:
    connection = sqlite3.connect(address.removeprefix("sqlite:///"))
    rows = connection.execute(f"EXPLAIN QUERY PLAN {statement}", {"queue": "tag"}).fetchall()
    connection.close()
    return str(rows)


JOBS = 60


def test_many_workers_at_once_never_exceed_a_limit(sql_queues: Queues) -> None:
    """Each worker notes in memory what runs while it holds a claim, and gives some claims back."""
    address = sql_queues.store.address
    assert address is not None
    limit(sql_queues, concurrency=3, key_concurrency=2)
    sql_queues.jobs.add("tag", [new(key=f"k{number % 3}") for number in range(JOBS)])
    running: Counter[str] = Counter()
    most: Counter[str] = Counter()
    lock, full = threading.Lock(), threading.Event()
    ids = {job.id: job.key for job in sql_queues.jobs.find(limit=JOBS)}
    done: list[int] = []

    def work(number: int) -> None:
        claims: Claims = open_claims(address, Claimant(f"worker:tag:{number}", 1, "run"))
        deadline = time.monotonic() + 60
        while len(done) < JOBS and time.monotonic() < deadline:
            claim = claims.exchange(None, TAG).claim
            if claim is None:
                continue
            key = ids[claim.id] or ""
            with lock:
                running[key] += 1
                running["all"] += 1
                for each in (key, "all"):
                    most[each] = max(most[each], running[each])
                if running["all"] == 3:
                    full.set()
            full.wait(30)  # the first claims are held until the limit is reached
            time.sleep(0.002)
            with lock:
                running[key] -= 1
                running["all"] -= 1
            gives_back = claim.attempt == 1 and claim.id % 5 == 0
            claims.exchange(given_back(claim) if gives_back else finished(claim, None), None)
            if not gives_back:
                done.append(claim.id)
        claims.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
    assert sorted(done) == sorted(ids)
    assert most["all"] == 3
    assert max(most[key] for key in ("k0", "k1", "k2")) <= 2
