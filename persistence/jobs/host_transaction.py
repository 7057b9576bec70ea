"""Enqueues jobs inside a transaction of the host: they exist exactly when the host commits.

The host's session or connection must be one to the database of the queues: one commit cannot span two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Connection, Dialect, event, inspect
from sqlalchemy.orm import Session

from rekindle.actors.errors import RequestRefusedError

from ..schema.tables import JOB
from . import job_statements as sql
from .claim_release import notify_workers

ELSEWHERE = "the session is connected to a database without the tables of Rekindle"


def insert_jobs(
    transaction: object, rows: Sequence[dict[str, Any]], queues: Dialect, when_committed: Callable[[], None]
) -> tuple[int, ...]:
    """Insert jobs without a commit; return their numbers.

    Args:
        transaction: the host's session or connection.
        rows: the jobs.
        queues: the dialect of the database of the queues.
        when_committed: called after the commit of a session; a connection does not announce that moment.

    Raises:
        RequestRefusedError: it is connected to another database.
        TypeError: it is neither a session nor a connection.
    """
    match transaction:
        case Session():
            event.listen(transaction, "after_commit", lambda _: when_committed(), once=True)
            return _insert(transaction.connection(), rows)
        case Connection():
            return _insert(transaction, rows)
        case _ if type(transaction).__module__.partition(".")[0] == "psycopg":
            return _insert_by_psycopg(transaction, rows, queues)
        case _:
            allowed = "an SQLAlchemy Session or Connection, or a psycopg connection"
            raise TypeError(f"session must be {allowed}, not {transaction!r:.80}")


def _insert(connection: Connection, rows: Sequence[dict[str, Any]]) -> tuple[int, ...]:
    if not inspect(connection).has_table(JOB.name):
        raise RequestRefusedError(ELSEWHERE)
    ids = connection.execute(sql.ENQUEUE, list(rows)).scalars().all()
    notify_workers(connection)
    return tuple(ids)


def _insert_by_psycopg(connection: Any, rows: Sequence[dict[str, Any]], queues: Dialect) -> tuple[int, ...]:
    if queues.name != "postgresql":
        raise RequestRefusedError(ELSEWHERE)
    statement = str(sql.ENQUEUE.compile(dialect=queues, column_keys=list(rows[0])))
    with connection.cursor() as cursor:
        if cursor.execute("SELECT to_regclass(%s)", (JOB.name,)).fetchone()[0] is None:
            raise RequestRefusedError(ELSEWHERE)
        ids = tuple(cursor.execute(statement, row).fetchone()[0] for row in rows)
        cursor.execute("SELECT pg_notify(%s, '')", (sql.CHANNEL,))
    return ids
