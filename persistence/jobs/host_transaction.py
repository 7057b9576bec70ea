"""Enqueues jobs inside a transaction of the host: they exist exactly when the host commits.

The host's session or connection must be one to the database of the queues: one commit cannot span two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Connection, Dialect, event, inspect
from sqlalchemy.orm import Session

from rekindle.actors.errors import RequestRefusedError
from rekindle.actors.facts.jobs import NewJob

from ..schema.tables import JOB
from . import job_statements as sql
from .new_jobs import add_jobs, new_row

ELSEWHERE = "the session is connected to a database without the tables of Rekindle"


def add_in_transaction(
    transaction: object,
    queue: str,
    jobs: Sequence[NewJob],
    now_wall_ms: int,
    when_committed: Callable[[], None],
    queues: Dialect,
) -> tuple[int, ...]:
    """Add jobs without a commit; return their numbers.

    Args:
        transaction: the host's session or connection.
        queue: the name of the queue.
        jobs: the jobs.
        now_wall_ms: the time.
        when_committed: called after the commit of a session; a connection does not announce that moment.
        queues: the dialect of the database of the queues.

    Raises:
        RequestRefusedError: it is connected to another database, or cannot add unique jobs.
        TypeError: it is neither a session nor a connection.
    """
    match transaction:
        case Session():
            event.listen(transaction, "after_commit", lambda _: when_committed(), once=True)
            return _add(transaction.connection(), queue, jobs, now_wall_ms)
        case Connection():
            return _add(transaction, queue, jobs, now_wall_ms)
        case _ if type(transaction).__module__.partition(".")[0] == "psycopg":
            return _add_by_psycopg(transaction, queue, jobs, now_wall_ms, queues)
        case _:
            allowed = "an SQLAlchemy Session or Connection, or a psycopg connection"
            raise TypeError(f"session must be {allowed}, not {transaction!r:.80}")


def _add(connection: Connection, queue: str, jobs: Sequence[NewJob], now_wall_ms: int) -> tuple[int, ...]:
    if not inspect(connection).has_table(JOB.name):
        raise RequestRefusedError(ELSEWHERE)
    return add_jobs(connection, queue, jobs, now_wall_ms)


def _add_by_psycopg(
    connection: Any, queue: str, jobs: Sequence[NewJob], now_wall_ms: int, queues: Dialect
) -> tuple[int, ...]:
    if queues.name != "postgresql":
        raise RequestRefusedError(ELSEWHERE)
    if any(job.unique or job.after for job in jobs):
        needs = "a unique job, or one that comes after others, needs an SQLAlchemy session or connection"
        raise RequestRefusedError(needs)
    rows = [new_row(queue, job, now_wall_ms) for job in jobs]
    statement = str(sql.ENQUEUE.compile(dialect=queues, column_keys=list(rows[0])))
    with connection.cursor() as cursor:
        if cursor.execute("SELECT to_regclass(%s)", (JOB.name,)).fetchone()[0] is None:
            raise RequestRefusedError(ELSEWHERE)
        ids = tuple(cursor.execute(statement, row).fetchone()[0] for row in rows)
        cursor.execute("SELECT pg_notify(%s, '')", (sql.CHANNEL,))
    return ids
