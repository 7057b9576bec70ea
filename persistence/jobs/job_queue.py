"""`JobQueue`: the `Jobs` port over SQLAlchemy, for hosts, the command line and other programs."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Self, Unpack

from sqlalchemy import Connection, Engine, select

from rekindle.actors.errors import RequestRefusedError, StoreUnavailableError, UnknownJobError
from rekindle.actors.facts.jobs import (
    CANCELLABLE,
    SERVED_QUEUES,
    JobCrash,
    JobState,
    JobView,
    NewJob,
    QueueStats,
    refused_cancellation,
    refused_drop,
    refused_retry,
    served_queues,
    with_pauses,
)
from rekindle.actors.spec.job_payload import JobSettings, checked_queue, new_jobs
from rekindle.actors.system.queues.current_trace import with_trace
from rekindle.actors.system.queues.watched_jobs import JobResults
from rekindle.worker.jobs.notice import notify

from ..database.database_file import SameFile
from ..database.driver_errors import failure, translated
from ..database.wall_clock import wall_ms
from ..database.write_connection import Writing
from ..database.write_priority import Precedence
from ..schema.tables import META
from . import job_statements as sql
from . import setting_rows
from .chains import chained_jobs
from .claim_release import notify_workers
from .job_rows import crash, queues, view
from .new_jobs import add_jobs
from .queue_settings import QueueSettings

LOT = 500
"""How many numbers go into one statement: every database has its own limit."""

LARGEST_NUMBER = 2**63 - 1

CLOSE_S = 1.0
"""How long `close` waits for a transaction that is under way."""


class JobQueue(QueueSettings, JobResults):
    """All queues of one database. Opened by `open_queue`, or as `jobs` of a store.

    One connection is kept for writing, used by one thread at a time; each read opens its own.
    """

    def __init__(self, writer: Engine, reader: Engine, *, name: str, database: Path | None = None) -> None:
        self.name = name
        self._reader = reader
        self._precedence = Precedence(database)
        self._lock = threading.Lock()
        self._writing = Writing(writer, None if database is None else SameFile(database))
        self._dialect = writer.dialect
        self._file = None if database is None else str(database)
        self._closed = False

    def enqueue(
        self,
        queue: str,
        payload: object,
        *,
        session: object = None,
        **settings: Unpack[JobSettings],
    ) -> int:
        """Put one job into a queue; return its number.

        Args:
            queue: a queue that the workers of the latest supervisor serve.
            payload: anything that JSON can represent.
            session: an SQLAlchemy `Session` or `Connection`, or a psycopg connection, to the same database:
                the job is part of its transaction, and exists exactly when the caller commits.
            settings: how to execute it; see `JobSettings`.

        Raises:
            UnknownQueueError: no worker serves the queue.
            PayloadError: the payload is not JSON, or a number is out of range.
            RequestRefusedError: the session is connected to another database.
            StoreUnavailableError: the database cannot be written to now.
        """
        (job,) = self.enqueue_many(queue, [payload], session=session, **settings)
        return job

    def enqueue_many(
        self,
        queue: str,
        payloads: Iterable[object],
        *,
        session: object = None,
        **settings: Unpack[JobSettings],
    ) -> tuple[int, ...]:
        """Put a job for each payload into a queue, all or none; return their numbers.

        The settings are those of `enqueue`.
        """
        checked_queue(queue, self.served())
        return self.add(queue, new_jobs(payloads, wall_ms(), **with_trace(settings)), session=session)

    def served(self) -> tuple[str, ...]:
        """The queues that the workers of the latest supervisor serve."""
        with self._reading() as connection:
            names = connection.execute(select(META.c.value).where(META.c.key == SERVED_QUEUES)).scalar()
        return served_queues(names)

    def add(self, queue: str, jobs: Sequence[NewJob], *, session: object = None) -> tuple[int, ...]:
        """Put the jobs into the queue, all or none; return their numbers."""
        if not jobs:
            return ()
        now = wall_ms()
        if session is not None:
            from .host_transaction import add_in_transaction  # it loads the ORM, which a store does without

            wake = partial(self.wake_workers, [queue])
            return add_in_transaction(session, queue, jobs, now, wake, self._dialect)
        with self._transaction() as connection:
            ids = add_jobs(connection, queue, jobs, now)
        self.wake_workers([queue])
        return ids

    def get(self, job_id: int) -> JobView:
        """One job.

        Raises:
            UnknownJobError: no job has that number.
        """
        for job in self.named([job_id]):
            return job
        raise UnknownJobError(job_id)

    def find(
        self,
        *,
        queue: str | None = None,
        state: str | None = None,
        limit: int = 100,
        longest: int | None = None,
    ) -> tuple[JobView, ...]:
        """Jobs, newest first; only those of one queue or in one state if given.

        With `longest`, here and below, at most this many characters of payload and result are read.
        """
        statement = sql.found(queue, state, limit, longest)
        with self._reading() as connection:
            return tuple(view(row, longest) for row in connection.execute(statement))

    def taken_by(
        self, component_id: str, *, since_wall_ms: int = 0, limit: int = 100, longest: int | None = None
    ) -> tuple[JobView, ...]:
        """The jobs that this worker was the last to claim, latest first; only recent jobs are searched."""
        statement = sql.taken_by(component_id, since_wall_ms, limit, longest)
        with self._reading() as connection:
            return tuple(view(row, longest) for row in connection.execute(statement))

    def named(self, job_ids: Collection[int], *, longest: int | None = None) -> tuple[JobView, ...]:
        """The jobs with these numbers, as far as they exist, in order of number."""
        with self._reading() as connection:
            return tuple(
                view(row, longest)
                for lot in _lots(job_ids)
                for row in connection.execute(sql.named(lot, longest))
            )

    def traced(self, after: tuple[int, int], *, limit: int) -> tuple[JobView, ...]:
        """The jobs of traces that ended after this time and number, in that order; without their payloads."""
        with self._reading() as connection:
            return tuple(view(row, 1) for row in connection.execute(sql.traced(*after, limit)))

    def crashes(self, job_ids: Sequence[int]) -> tuple[JobCrash, ...]:
        """The evidence against jobs, oldest first; no more than the latest thousand or so."""
        with self._reading() as connection:
            rows = [row for lot in _lots(job_ids) for row in connection.execute(sql.crashes(lot))]
        return tuple(map(crash, sorted(rows, key=lambda row: row.id)))

    def stats(self) -> tuple[QueueStats, ...]:
        """The figures of every queue that has jobs, by name."""
        with self._reading() as connection:
            found = queues(connection.execute(sql.STATS))
            return with_pauses(found, setting_rows.pauses(connection, wall_ms()))

    def retry(self, job_ids: Sequence[int]) -> None:
        """Put toxic, failed, cancelled or expired jobs back with their counts cleared, all or none."""
        with self._transaction() as connection:
            for job_id, state in _states(connection, job_ids).items():
                if (refusal := refused_retry(job_id, state)) is not None:
                    raise RequestRefusedError(refusal)
            if (refusal := chained_jobs.refused_by_predecessors(connection, job_ids)) is not None:
                raise RequestRefusedError(refusal)
            connection.execute(sql.RETRY, [{"job": job_id, "at": wall_ms()} for job_id in job_ids])
            notify_workers(connection)
        self.wake_workers(self.served())

    def cancel(self, job_ids: Sequence[int]) -> tuple[JobState, ...]:
        """Cancel pending jobs, and ask running ones to end, all or none; the state of each from now on.

        A running job that was cancelled is never done, retried or toxic: it ends as `cancelled`, when its
        worker ends it, or when the supervisor has ended its process.

        Raises:
            UnknownJobError: one of them does not exist.
            RequestRefusedError: one of them has ended already.
        """
        with self._transaction() as connection:
            states = _states(connection, job_ids)
            for job_id, state in states.items():
                if (refusal := refused_cancellation(job_id, state)) is not None:
                    raise RequestRefusedError(refusal)
            if job_ids:
                connection.execute(sql.CANCEL, [{"job": job_id, "at": wall_ms()} for job_id in job_ids])
        self.wake_workers(self.served())  # a batch may have ended
        ends = dict.fromkeys(CANCELLABLE, JobState.CANCELLED) | {JobState.RUNNING: JobState.RUNNING}
        return tuple(ends[JobState(states[job_id])] for job_id in job_ids)

    def limited(self) -> tuple[JobView, ...]:
        """The running jobs that are cancelled, have a time limit, or show their progress."""
        with self._reading() as connection:
            return tuple(view(row) for row in connection.execute(sql.limited()))

    def next_expiry(self) -> int | None:
        """When the next pending job expires, or should have."""
        with self._reading() as connection:
            found: int | None = connection.execute(sql.NEXT_EXPIRY).scalar()
        return found

    def expire(self, now_wall_ms: int) -> tuple[int, ...]:
        """Let the jobs expire that have not begun in time, a lot at a time; their numbers."""
        with self._transaction() as connection:
            values = {"now": now_wall_ms, "most": LOT}
            return tuple(connection.execute(sql.EXPIRE, values).scalars().all())

    def drop(self, job_ids: Sequence[int]) -> None:
        """Delete jobs that are not running, with the evidence against them, all or none."""
        with self._transaction() as connection:
            for job_id, state in _states(connection, job_ids).items():
                if state == JobState.RUNNING:
                    raise RequestRefusedError(f"job {job_id} is running: it cannot be dropped now")
            if (waited := chained_jobs.followed_and_open(connection, job_ids)) is not None:
                raise RequestRefusedError(refused_drop(waited))
            rows = [{"job": job_id} for job_id in job_ids]
            connection.execute(sql.DROP_CRASHES, rows)
            connection.execute(sql.DROP, rows)

    def prune(self, *, finished_before_wall_ms: int) -> int:
        """Delete the jobs that were done before this time; return how many."""
        evidence, jobs = sql.prune(finished_before_wall_ms)
        with self._transaction() as connection:
            connection.execute(evidence)
            return connection.execute(jobs).rowcount

    def wake_workers(self, queues: Iterable[str]) -> None:
        """Wake idle workers after a commit; PostgreSQL does so by itself (`notify_workers`)."""
        if self._file is not None:
            notify(self._file, queues)

    def __enter__(self) -> Self:
        """Return the queue, which is closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self.close()

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        self._closed = True
        # A transaction may wait for a server that does not answer: then the thread that waits closes it.
        if self._lock.acquire(timeout=CLOSE_S):
            try:
                self._disconnect()
            finally:
                self._lock.release()

    def _disconnect(self) -> None:
        self._writing.drop()
        self._precedence.close()

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with translated(self.name), self._reader.connect() as connection:
            yield connection

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with self._lock:
            try:
                if self._closed:
                    raise StoreUnavailableError(f"the store {self.name} is closed")
                with self._precedence, self._writing:
                    yield self._writing.connection
            except self._writing.errors as error:
                self._writing.drop()
                raise failure(self.name, error) from error
            finally:
                if self._closed:
                    self._disconnect()


def _states(connection: Connection, job_ids: Sequence[int]) -> dict[int, str]:
    found = {row.id: row.state for lot in _lots(job_ids) for row in connection.execute(sql.states(lot))}
    for job_id in job_ids:
        if job_id not in found:
            raise UnknownJobError(job_id)
    return found


def _lots(job_ids: Collection[int]) -> Iterator[tuple[int, ...]]:
    """The valid job numbers among these, sorted, in lots that fit into one statement."""
    possible = sorted({job_id for job_id in job_ids if 0 < job_id <= LARGEST_NUMBER})
    for begin in range(0, len(possible), LOT):
        yield tuple(possible[begin : begin + LOT])
