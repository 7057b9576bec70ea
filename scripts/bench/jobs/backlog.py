"""What a backlog costs a claim: a queue with one job, beside queues with many jobs behind it.

A claim and its result are one round; the rounds of the queues are measured by turns.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

from sqlalchemy import Engine, create_engine, text

from rekindle.actors.facts.jobs import NewJob
from rekindle.persistence import open_store
from rekindle.worker.jobs.claims import Claimant, ClaimRequest, Claims, finished
from rekindle.worker.jobs.queue_address import open_claims

ROUNDS = 300
KINDS = ("empty", "pending", "not due")

_COLUMNS = (
    "queue, payload, priority, not_before_wall_ms, state, attempts, crash_count, error_count, alone,"
    " created_at_wall_ms"
)
_ROW = ":queue, '{}', :priority, :at, 'pending', 0, 0, 0, 0, :at"
_FILL = {
    "postgresql": f"INSERT INTO rekindle_job ({_COLUMNS}) SELECT {_ROW} FROM generate_series(1, :many)",
    "sqlite": f"""
    INSERT INTO rekindle_job ({_COLUMNS})
    WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < :many)
    SELECT {_ROW} FROM number""",
}


@dataclass(frozen=True, slots=True)
class Backlog:
    """How long a claim and its result took beside a backlog of this kind."""

    kind: str
    jobs: int
    median_ms: float
    ratio: float
    """To the queue without a backlog."""


def fill(engine: Engine, queue: str, many: int, *, due_in_s: float = 0.0, priority: int = 5) -> None:
    """Put many jobs into a queue, by one statement."""
    now_ms = time.time_ns() // 1_000_000
    values = {"queue": queue, "many": many, "priority": priority, "at": now_ms + round(due_in_s * 1000)}
    with engine.begin() as connection:
        connection.execute(text(_FILL[connection.dialect.name]), values)


def measure_backlog(where: str, jobs: int) -> list[Backlog]:
    """Measure the three kinds on one database."""
    store = open_store(where)
    url = where.replace("postgresql:", "postgresql+psycopg:") if "://" in where else f"sqlite:///{where}"
    engine = create_engine(url)
    fill(engine, "pending", jobs)
    fill(engine, "not due", jobs, due_in_s=1e6)
    engine.dispose()
    assert store.address is not None
    claims = open_claims(store.address, Claimant("worker:bench:0", 1, "bench"))
    took: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for _ in range(ROUNDS):
        for kind in KINDS:
            store.jobs.add(kind, [NewJob(payload="{}")])
            took[kind].append(_round_ms(claims, kind))
    claims.close()
    store.close()
    medians = {kind: statistics.median(times) for kind, times in took.items()}
    return [
        Backlog(kind, 0 if kind == "empty" else jobs, median, median / medians["empty"])
        for kind, median in medians.items()
    ]


def _round_ms(claims: Claims, queue: str) -> float:
    began = time.perf_counter()
    claim = claims.exchange(None, ClaimRequest((queue,))).claim
    assert claim is not None
    claims.exchange(finished(claim, "1"), None)
    return (time.perf_counter() - began) * 1000
