"""Workers without a job: what wakes them, and that waiting costs nothing."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tests.contract.jobs.test_claims import TAG, _empty
from tests.contract.queues import Queues
from tests.processes.waiting import eventually

from rekindle.actors.facts.jobs import NewJob
from rekindle.worker.handle import Interruption
from rekindle.worker.jobs.claims import (
    Claims,
)


def test_idle_workers_are_notified_of_a_new_job_at_once(sql_queues: Queues) -> None:
    noticed = idle_until(sql_queues, lambda: sql_queues.add())
    assert noticed < 1.0


def test_idle_workers_wake_when_a_delayed_job_is_due(sql_queues: Queues) -> None:
    due = time.time_ns() // 1_000_000 + 300
    sql_queues.add(not_before_wall_ms=due)
    assert idle_until(sql_queues, lambda: None) < 10.0
    assert time.time_ns() // 1_000_000 >= due
    assert sql_queues.claim() is not None


def test_idle_workers_are_notified_of_a_released_job_at_once(sql_queues: Queues) -> None:
    sql_queues.add()
    sql_queues.claim(worker="worker:tag:1")
    noticed = idle_until(sql_queues, lambda: sql_queues.end(worker="worker:tag:1"))
    assert noticed < 1.0


def test_who_is_to_stop_does_not_idle(sql_queues: Queues) -> None:
    interruption, began = Interruption(), time.monotonic()
    interruption.set()
    sql_queues.claims().idle(("tag",), 60.0, interruption.fileno())
    assert time.monotonic() - began < 5.0


def test_an_idle_worker_is_interrupted_at_once(sql_queues: Queues) -> None:
    interruption = Interruption()
    assert idle_until(sql_queues, interruption.set, interruption) < 1.0


def test_an_idle_worker_that_takes_a_job_wakes_the_next_one(sql_queues: Queues) -> None:
    """One notice is given for two jobs; without passing it on, the second would wait for seconds."""
    others = [sql_queues.claims(worker=f"worker:tag:{n}") for n in (1, 2)]
    woken: queue.Queue[float] = queue.Queue()

    def serve(claims: Claims) -> None:
        claims.idle(("tag",), 20.0, Interruption().fileno())
        assert claims.exchange(None, TAG).claim is not None
        woken.put(time.monotonic())

    threads = [threading.Thread(target=serve, args=(claims,)) for claims in others]
    for thread in threads:
        thread.start()
    assert eventually(lambda: all(map(_is_asleep, threads)))
    at = time.monotonic()
    sql_queues.jobs.add("tag", [_empty(), _empty()])
    assert all(woken.get(timeout=30) - at < 5.0 for _ in threads)
    for thread in threads:
        thread.join()


def idle_until(
    queues: Queues, happens: Callable[[], object], interruption: Interruption | None = None
) -> float:
    """How long after something has happened an idle worker stops idling."""
    claims: Claims = queues.claims(worker="worker:tag:9")
    interruption = interruption or Interruption()
    ended: list[float] = []

    def idle() -> None:
        claims.idle(("tag",), 20.0, interruption.fileno())
        ended.append(time.monotonic())

    thread = threading.Thread(target=idle)
    thread.start()
    assert eventually(lambda: _is_asleep(thread))
    at = time.monotonic()
    happens()
    thread.join(30.0)
    return ended[0] - at


def _is_asleep(thread: threading.Thread) -> bool:
    """Whether a thread waits for something: several looks in a row find it asleep."""
    stat = Path(f"/proc/self/task/{thread.native_id}/stat")
    return all(stat.read_text().rpartition(")")[2].split()[0] == "S" for _ in range(20))


def test_jobs_that_are_not_due_cost_a_claim_and_an_idle_worker_nothing(sql_queues: Queues) -> None:
    """They were all looked at, one by one: 55 ms of them at 300,000."""
    claims = sql_queues.claims()
    empty_s = _claim_s(claims)
    later = [NewJob(payload="1", priority=n % 5, not_before_wall_ms=2**60 + n) for n in range(30_000)]
    sql_queues.jobs.add("tag", later)
    due = sql_queues.add(priority=7)
    claim = claims.exchange(None, TAG).claim
    assert claim is not None
    assert claim.id == due
    # The best of several: this machine may be busy.
    assert any(_claim_s(claims) < 4 * empty_s for _ in range(10))


def _claim_s(claims: Claims) -> float:
    """How long the quickest of some claims and looks takes that find nothing."""
    took, interruption = [], Interruption().fileno()
    for _ in range(50):
        began = time.perf_counter()
        assert claims.exchange(None, TAG).claim is None
        claims.idle(("tag",), 0.0, interruption)
        took.append(time.perf_counter() - began)
    return min(took)
