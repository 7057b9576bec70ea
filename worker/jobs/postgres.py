"""The queue in PostgreSQL; the only module on the worker's side that needs psycopg.

An exchange is one statement, hence one round trip and one transaction. The server wakes idle workers:
adding jobs to a queue notifies the channel `rekindle_jobs`.
"""

from __future__ import annotations

import select
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache
from typing import Any

import psycopg

from . import session_name, sql
from .claims import (
    Claim,
    Claimant,
    ClaimRequest,
    Ending,
    Exchanged,
    QueueUnavailableError,
    Taken,
    claim_of,
    delivered_values,
    due_values,
    ending_values,
    fence_values,
    is_expired,
    next_due,
    now_wall_ms,
    request_values,
)
from .limits.limited_claims import limited_claim, limited_next, limits_of

CHANNEL = "rekindle_jobs"
CONNECT_TIMEOUT_S = 3
PREPARE_AFTER = 2
_NOTIFY = "SELECT pg_notify(:channel, '')"

_CLAIM = sql.postgres_exchange(None)
_WITH_CLAIM = {
    ending: sql.postgres_exchange(ending) for ending in (sql.FINISH, sql.RETRY, sql.FAIL, sql.GIVE_BACK)
}
"""Each ending together with a claim."""

# Without statistics, as after a sudden backlog, the planner would read all jobs and sort them instead of
# reading the first one in the order of an index.
_SET_UP = f"""SELECT set_config('application_name', {session_name.OF_STORE} || %(name)s, false),
    set_config('enable_sort', 'off', false)""".encode()


@lru_cache(maxsize=64)
def _words(statement: str, on_node: bool) -> bytes:
    """A statement with psycopg's placeholders; on the node of a cluster with its fence."""
    return sql.for_psycopg(sql.on_node(statement) if on_node else statement)


class PostgresClaims:
    """The `Claims` of a PostgreSQL database."""

    def __init__(self, address: str, claimant: Claimant) -> None:
        self._address = address
        self._claimant = claimant
        self._on_node = claimant.epoch is not None
        self._name = session_name.of_worker(claimant.worker, claimant.generation, claimant.run)
        self._connection: psycopg.Connection[Any] | None = None
        self._cursor: psycopg.Cursor[Any] | None = None
        """Reused: creating one costs as much as using it."""
        self._listening = False
        self._limited: set[str] = set()
        """The queues that were found to have limits."""

    def exchange(self, ending: Ending | None, request: ClaimRequest | None) -> Exchanged:
        """Record an ending and claim the next job: from the first queue in one transaction.

        Each further queue is asked only when the ones before it are empty.
        """
        ended = None if ending is None else ending.claim.queue
        exchanged = self._exchange(ending, request)
        if ended in self._limited:  # other workers may wait for its end
            self._one(_NOTIFY, {"channel": CHANNEL})
        return exchanged

    def _exchange(self, ending: Ending | None, request: ClaimRequest | None) -> Exchanged:
        accepted: bool | None = None
        for queue in request.queues if request is not None else ():
            assert request is not None
            values = request_values(request, queue, self._claimant)
            if ending is None:
                row = self._one(_CLAIM, values)
            else:
                both = {**ending_values(ending, self._claimant), **values}
                row = self._one(_WITH_CLAIM[ending.statement], both)
                accepted, ending = row[0] == 1, None
            while row[2] is not None and is_expired(row[2:]):
                row = self._one(_CLAIM, values)
            if row[2] is not None:
                return Exchanged(accepted, claim_of(row[2:]))
            if row[1] is not None:
                limited = self._limited_claim(queue, request)
                if limited.claim is not None or limited.held_back:
                    return replace(limited, accepted=accepted)
                continue
            if request.isolate and not request.free and self._found(sql.SUSPECT_WAITS, values):
                return Exchanged(accepted, held_back=True)
        if ending is not None:
            row = self._one(ending.statement, ending_values(ending, self._claimant))
            accepted = row == (ending.state,)
        return Exchanged(accepted)

    def _limited_claim(self, queue: str, request: ClaimRequest) -> Exchanged:
        self._limited.add(queue)
        with self._connected() as cursor, cursor.connection.transaction():
            limits = limits_of(self._rows, queue, lock=True)
            if limits is None:  # no longer; the next look finds its jobs
                return Exchanged()
            return limited_claim(self._rows, request, queue, self._claimant, limits)

    def _rows(self, statement: str, values: dict[str, Any]) -> list[Any]:
        with self._connected() as cursor:
            cursor.execute(self._words(statement), values)
            return cursor.fetchall() if cursor.description is not None else []

    def mine(self) -> tuple[Claim, ...]:
        """Every claim of this claimant that is in force."""
        with self._connected() as cursor:
            rows = cursor.execute(self._words(sql.MINE), self._claimant.values()).fetchall()
        return tuple(claim_of(row) for row in sorted(rows))

    def was_recorded(self, ending: Ending) -> bool:
        """Whether an ending whose outcome is unknown was recorded."""
        return self._found(sql.WAS_ENDED, ending_values(ending, self._claimant))

    def save(self, claim: Claim, checkpoint: str) -> bool:
        """Store how far the execution came; False: the claim is no longer in force, or is cancelled."""
        return self._note(sql.CHECKPOINT, claim, checkpoint=checkpoint)

    def show(self, claim: Claim, progress: str) -> bool:
        """Store what the execution shows of its progress; False: as above."""
        return self._note(sql.PROGRESS, claim, progress=progress)

    def _note(self, statement: str, claim: Claim, **values: str) -> bool:
        with self._connected() as cursor:
            noted = cursor.execute(self._words(statement), {**fence_values(claim, self._claimant), **values})
            return noted.rowcount == 1

    def take(self, queue: str, key: str, payload: str) -> Taken:
        """Claim the job beside one that another queue delivered."""
        values = delivered_values(queue, key, payload, self._claimant)
        with self._connected() as cursor, cursor.connection.transaction():
            found = cursor.execute(self._words(sql.FIND_DELIVERED), values).fetchone()
            found = found or cursor.execute(self._words(sql.ADD_DELIVERED), values).fetchone()
            assert found is not None
            taken = {**values, "id": found[0]}
            row = cursor.execute(self._words(sql.TAKE_DELIVERED), taken).fetchone()
        return Taken(found[1]) if row is None else Taken("running", claim_of(row))

    def idle(self, queues: tuple[str, ...], longest_s: float, interruption: int) -> None:
        """Return when the server announces a job, or a delayed job is due."""
        self._listen()
        until = now_wall_ms() + longest_s * 1000
        for queue in queues:
            values = due_values(queue, self._claimant)
            # After LISTEN: a job that was added before it is not announced.
            until = min(until, self._next_due(queue, values))
        with self._connected() as cursor:
            poll = select.poll()
            for descriptor in (cursor.connection.fileno(), interruption):
                poll.register(descriptor, select.POLLIN)
            # First what has been received with the answers above, which no longer makes the socket readable.
            while not any(True for _ in cursor.connection.notifies(timeout=0, stop_after=1)):
                left_ms = until - now_wall_ms()
                if left_ms <= 0 or any(ready == interruption for ready, _ in poll.poll(left_ms)):
                    return

    def _next_due(self, queue: str, values: dict[str, Any]) -> float:
        limits = limits_of(self._rows, queue)
        if limits is not None:
            return limited_next(self._rows, queue, values, limits)
        return next_due(self._one(sql.NEXT_DUE, values))

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection, self._cursor, self._listening = self._connection, None, None, False
        if connection is not None:
            with suppress(psycopg.Error, OSError):
                connection.close()

    def _listen(self) -> None:
        if not self._listening:
            with self._connected() as cursor:
                cursor.execute(f"LISTEN {CHANNEL}")
            self._listening = True

    def _words(self, statement: str) -> bytes:
        return _words(statement, self._on_node)

    def _one(self, statement: str, values: dict[str, Any]) -> Any:
        with self._connected() as cursor:
            return cursor.execute(self._words(statement), values).fetchone()

    def _found(self, statement: str, values: dict[str, Any]) -> bool:
        return self._one(statement, values) is not None

    @contextmanager
    def _connected(self) -> Iterator[psycopg.Cursor[Any]]:
        try:
            if self._connection is None or self._cursor is None:
                self._connection = psycopg.connect(
                    self._address,
                    autocommit=True,
                    prepare_threshold=PREPARE_AFTER,
                    connect_timeout=CONNECT_TIMEOUT_S,
                    tcp_user_timeout=5000,
                )
                self._cursor = self._connection.cursor()
                self._cursor.execute(_SET_UP, {"name": self._name})
            yield self._cursor
        except (psycopg.Error, OSError) as error:
            self.close()
            raise QueueUnavailableError(str(error).strip().partition("\n")[0]) from error
