"""What many jobs in a queue cost a claim: by the work that the database does, not by the clock.

`scripts/bench/run-jobs` measures the same with a million jobs.
"""

from __future__ import annotations

import sqlite3
import time
from typing import Any

import psycopg
import pytest
from tests.contract.queues import Queues, new

from rekindle.worker.jobs import sql
from rekindle.worker.jobs.claims import Claimant, ClaimRequest, request_values
from rekindle.worker.jobs.postgres import PostgresClaims

MANY = 5000
WORKER = Claimant("worker:tag:0", 1, "run")
FAR_MS = 2_000_000_000_000


def work_of_a_claim(address: str, *, busy: bool = False) -> int:
    """How many steps (SQLite) or pages (PostgreSQL) a claim takes; it is undone."""
    request = ClaimRequest(("tag",), free=not busy, isolate=busy)
    values = {**request_values(request, "tag", WORKER), "now": time.time_ns() // 1_000_000 + 1000}
    if address.startswith("sqlite"):
        return steps(address.removeprefix("sqlite:///"), values)
    return pages(address, values)


def steps(path: str, values: dict[str, Any]) -> int:
    """The instructions of SQLite's virtual machine, in tens."""
    counted = [0]

    def count() -> int:
        counted[0] += 1
        return 0

    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    connection.set_progress_handler(count, 10)
    for statement in (sql.SQLITE_CLAIM, sql.NEXT_DUE, sql.SUSPECT_WAITS):
        connection.execute(statement, values).fetchall()
    connection.set_progress_handler(None, 0)
    connection.rollback()
    connection.close()
    return counted[0]


def pages(address: str, values: dict[str, Any]) -> int:
    """The pages that PostgreSQL reads, as a worker is connected: without statistics of the table."""
    claims = PostgresClaims(address, WORKER)
    claims.mine()
    connection = claims._connection
    assert isinstance(connection, psycopg.Connection)
    read = 0
    connection.execute("BEGIN")
    for statement in (sql.postgres_exchange(None), sql.NEXT_DUE, sql.SUSPECT_WAITS):
        explained = b"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + sql.for_psycopg(statement)
        ((plan,),) = connection.execute(explained, values, prepare=False).fetchone()  # type: ignore[misc]
        read += plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"]
    connection.execute("ROLLBACK")
    claims.close()
    return read


@pytest.mark.parametrize(
    "backlog",
    [{}, {"priority": 5}, {"not_before_wall_ms": FAR_MS}, {"not_before_wall_ms": FAR_MS, "priority": -5}],
    ids=["due", "due, but less urgent", "not due", "not due, but more urgent"],
)
def test_a_claim_takes_no_more_work_if_many_jobs_wait(sql_queues: Queues, backlog: dict[str, Any]) -> None:
    address = sql_queues.store.address
    assert address is not None
    sql_queues.jobs.add("tag", [new(not_before_wall_ms=1), new(**backlog)])
    alone = work_of_a_claim(address)
    sql_queues.jobs.add("tag", [new(**backlog)] * MANY)
    assert work_of_a_claim(address) <= alone * 1.5


def test_nor_if_a_suspect_is_before_them_that_only_a_free_worker_may_take(sql_queues: Queues) -> None:
    address = sql_queues.store.address
    assert address is not None
    sql_queues.crash(sql_queues.add(not_before_wall_ms=1))
    sql_queues.add()
    alone = work_of_a_claim(address, busy=True)
    sql_queues.jobs.add("tag", [new()] * MANY)
    assert work_of_a_claim(address, busy=True) <= alone * 1.5
