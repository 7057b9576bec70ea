"""Enqueues jobs inside a transaction of the host: they exist exactly when the host commits.

The host's session or connection must be one to the database of the queues: one commit cannot span two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cache
from typing import Any, cast

from sqlalchemy import Connection, Dialect, Engine, NullPool, event, inspect, make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from rekindle.actors.errors import RequestRefusedError
from rekindle.actors.facts.jobs import NewJob

from ..schema.tables import JOB
from .new_jobs import add_jobs

ELSEWHERE = "the session is connected to a database without the tables of Rekindle"
ASYNC = "enqueue inside of its run_sync: await session.run_sync(lambda sync: queue.enqueue(…, session=sync))"
ASYNC_DRIVER = (
    "pass the session of SQLAlchemy's asyncio extension through its run_sync, or use a psycopg.Connection"
)

WAKES = "rekindle_wakes"
"""Where a session keeps the callbacks for its commit, by queue."""


def add_in_transaction(
    transaction: object,
    queue: str,
    jobs: Sequence[NewJob],
    now_wall_ms: int,
    when_committed: Callable[[], None],
    queues: Dialect,
) -> tuple[int, ...]:
    """Add jobs without a commit; return their numbers.

    A psycopg connection in autocommit mode has no transaction to join: the jobs exist at once, all or none.

    Args:
        transaction: the host's session or connection.
        queue: the name of the queue.
        jobs: the jobs.
        now_wall_ms: the time.
        when_committed: called after the commit of a session; a connection does not announce that moment.
        queues: the dialect of the database of the queues.

    Raises:
        RequestRefusedError: it is connected to another database.
        TypeError: it is neither a session nor a connection.
    """
    module, name = type(transaction).__module__.partition(".")[0], type(transaction).__name__
    match transaction:
        case Session():
            ids = _add(transaction.connection(), queue, jobs, now_wall_ms)
            _call_after_commit(transaction, queue, when_committed)
            return ids
        case Connection():
            return _add(transaction, queue, jobs, now_wall_ms)
        case _ if module == "psycopg" and name == "Connection":
            return _add_by_psycopg(transaction, queue, jobs, now_wall_ms, queues)
        case _ if name.startswith("Async") and module in ("sqlalchemy", "psycopg"):
            how = ASYNC if module == "sqlalchemy" else ASYNC_DRIVER
            raise TypeError(f"session must not be an {name}: {how}")
        case _:
            allowed = "an SQLAlchemy Session or Connection, or a psycopg Connection"
            raise TypeError(f"session must be {allowed}, not {transaction!r:.80}")


def _add(connection: Connection, queue: str, jobs: Sequence[NewJob], now_wall_ms: int) -> tuple[int, ...]:
    if not inspect(connection).has_table(JOB.name):
        raise RequestRefusedError(ELSEWHERE)
    return add_jobs(connection, queue, jobs, now_wall_ms)


# ── an SQLAlchemy session ────────────────────────────────────────────────────────────────


def _call_after_commit(session: Session, queue: str, call: Callable[[], None]) -> None:
    """One listener for each session, and one call for each queue, however many jobs it adds."""
    if WAKES not in session.info:
        session.info[WAKES] = {}
        event.listen(session, "after_commit", _committed)
    session.info[WAKES][queue] = call


def _committed(session: Session) -> None:
    if session.in_nested_transaction():
        return  # the end of a savepoint commits nothing
    calls, session.info[WAKES] = session.info[WAKES], {}
    for call in calls.values():
        call()


# ── a psycopg connection ─────────────────────────────────────────────────────────────────


def _add_by_psycopg(
    connection: Any, queue: str, jobs: Sequence[NewJob], now_wall_ms: int, queues: Dialect
) -> tuple[int, ...]:
    if queues.name != "postgresql":
        raise RequestRefusedError(ELSEWHERE)
    own = cast("Any", _Lent(connection))  # it has the rest by delegation
    pool = NullPool(lambda: own, dialect=_dialect())
    lent = Engine(pool, _dialect(), make_url("postgresql://"))
    try:
        with connection.transaction() if connection.autocommit else nullcontext(), lent.connect() as borrowed:
            cached = borrowed.execution_options(compiled_cache=_COMPILED)
            return _add(cached, queue, jobs, now_wall_ms)
    except DBAPIError as error:
        raise (error.orig or error) from None  # the host expects the errors of its driver


_COMPILED: dict[Any, Any] = {}


class _Lent:
    """The host's connection with cursors of the kind that SQLAlchemy expects, whatever the host's own are."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def cursor(self) -> Any:
        from psycopg import Cursor
        from psycopg.rows import tuple_row

        return Cursor(self._connection, row_factory=tuple_row)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


@cache
def _dialect() -> Dialect:
    """PostgreSQL's dialect for a connection that is lent: the host ends its transaction, and closes it."""
    from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

    class LentDialect(PGDialect_psycopg):
        supports_statement_cache = True

        def do_begin(self, dbapi_connection: Any) -> None:
            """The host has begun."""

        do_commit = do_rollback = do_close = do_terminate = do_begin

    lent: Any = LentDialect  # its base is not typed
    return cast("Dialect", lent(dbapi=lent.import_dbapi()))
