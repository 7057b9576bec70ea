"""`SqlStore`: restart history in SQLite or PostgreSQL.

One connection is kept for writing, for the one thread that commits. Each read opens a connection of
its own, so a gateway may read while the store writer commits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from loguru import logger
from msgspec.structs import replace
from sqlalchemy import Engine

from rekindle.actors.deaths.crash_bundle import Bundle
from rekindle.actors.errors import RecordRefusedError, StoreError, StoreUnavailableError
from rekindle.actors.facts.alert import Alert
from rekindle.actors.facts.audit_entry import AuditEntry
from rekindle.actors.facts.jobs import CURRENT_RUN, JobSettled, JobState
from rekindle.actors.facts.records import (
    DeathRecord,
    EventPage,
    EventRecord,
    JobRecord,
    Lives,
    MetaSet,
    Record,
    Remembered,
    UsageNoted,
)
from rekindle.actors.facts.runs import Run
from rekindle.actors.spec.policies.retention_policy import Retention
from rekindle.worker.jobs.claims import Claimant, Claims
from rekindle.worker.jobs.notice import remove_notices
from rekindle.worker.jobs.queue_address import open_claims

from .database.database_file import SameFile
from .database.driver_errors import commit_failure, failure, translated
from .database.ownership import Ownership, Unowned
from .database.wall_clock import wall_ms
from .database.write_connection import Writing
from .database.write_priority import Precedence
from .jobs.job_queue import JobQueue
from .mark_file import MarkFile
from .record_writer import RecordWriter
from .retention import Pruning
from .spool import TAKEN, Kept, free_spool, put_damaged_away, read_spool, spools_at, waiting_in, write_spool
from .sql import statements as sql
from .sql.alert_rows import load_alerts
from .sql.decoding import audit_entry, death_record, event_record, raised, remembered
from .sql.encoding import bundle_from
from .sql.generation_rows import LOAD_GENERATIONS
from .sql.run_rows import run_of, runs_of
from .sql.usage_rows import usage_noted, usages_of
from .sql.witness import witness


class JobsElsewhere(Protocol):
    """Queues in another database than the history."""

    address: str
    queue: JobQueue

    def open_claims(self, claimant: Claimant) -> Claims:
        """The queues as a worker uses them."""
        ...

    def release(self, records: Sequence[JobRecord]) -> None:
        """Have the jobs of workers released that have ended. Never waits."""
        ...


class SqlStore:
    """The `Store` port over SQLAlchemy. Opened by `open_store`; no SQLAlchemy exception leaves it."""

    def __init__(
        self,
        writer: Engine,
        reader: Engine,
        *,
        name: str,
        address: str | None = None,
        database: Path | None = None,
        ownership: Ownership | None = None,
        when_connected: Callable[[], None] | None = None,
        wall_ms: Callable[[], int] = wall_ms,
        spool: Path | None = None,
    ) -> None:
        self.name = name
        self.address = address
        """Where a worker finds the queues. It contains the password: do not log it."""
        self.jobs = JobQueue(writer, reader, name=name, database=database)
        self._jobs_elsewhere: JobsElsewhere | None = None
        self._database = database
        self._precedence = Precedence(database)
        self._writer = writer
        self._reader = reader
        self._ownership = ownership or Unowned()
        self._pruning = Pruning()
        file = None if database is None else SameFile(database)
        self._writing = Writing(writer, file, when_connected)
        self._closed = False
        self._spool = spool
        self._mark = None if spool is None else MarkFile(Path(f"{spool}.mark"))
        self._kept_aside: Path | None = None
        self._has_waiting = False
        """Whether files of former runs were there when the history was loaded."""
        self._former_run: str | None = None
        """The latest run that had written when this one loaded the history."""
        self._in_doubt: tuple[Kept, ...] = ()
        """The records of a commit that failed when it was all but done: they may be stored."""
        self._under_way: Sequence[Kept] = ()
        """The records of a commit that has not returned yet."""
        self._records = RecordWriter(self._writing, writer.dialect, wall_ms)

    def use_jobs_of(self, other: JobsElsewhere) -> None:
        """Use the queues of another database; call it before a system opens the store."""
        self.jobs.close()
        self._jobs_elsewhere, self.jobs, self.address = other, other.queue, other.address

    def load(self) -> Remembered:
        """The history that a supervisor starts from.

        What former runs kept aside is in it as far as a start needs it: a worker that they gave up stays
        failed, and a process whose end they knew is not lost with its supervisor.
        """
        with translated(self.name), self._reader.connect() as connection:
            found = remembered(
                connection.execute(sql.LOAD_POLICIES),
                connection.execute(sql.LOAD_RECENT_DEATHS),
                connection.execute(sql.LOAD_META),
                connection.execute(sql.EVENT_SPAN).one()[1] or 0,
                connection.execute(sql.LOAD_TRACES),
                connection.execute(LOAD_GENERATIONS).all(),
                connection.scalar(sql.LAST_EVENT_AT) or 0,
            )
        self._former_run = found.meta.get(CURRENT_RUN)
        files = self.waiting_files()
        self._has_waiting = bool(files)
        found = waiting_in(files, found.meta).added_to(found)
        used = found.generations if self._mark is None else raised(found.generations, self._mark.read())
        return replace(found, generations=MappingProxyType(used))

    def producer(self) -> JobQueue:
        """The queues, to put jobs into."""
        return self.jobs

    def open_claims(self, claimant: Claimant) -> Claims:
        """The queues as a worker uses them; nothing is connected yet."""
        if self._jobs_elsewhere is not None:
            return self._jobs_elsewhere.open_claims(claimant)
        assert self.address is not None
        return open_claims(self.address, claimant)

    def deaths(
        self, component_id: str | None = None, *, signal: int | None = None, limit: int = 100
    ) -> tuple[DeathRecord, ...]:
        """The latest deaths, newest first, of one worker or of all."""
        statement = sql.latest_deaths(component_id, signal, limit)
        with translated(self.name), self._reader.connect() as connection:
            return tuple(death_record(row) for row in connection.execute(statement))

    def bundles(
        self, component_id: str, *, generation: int | None = None, limit: int = 100
    ) -> tuple[Bundle, ...]:
        """The evidence of a worker's deaths, newest first, or of one death."""
        statement = sql.latest_bundles(component_id, generation, limit)
        with translated(self.name), self._reader.connect() as connection:
            found = [bundle_from(text) for text in connection.execute(statement).scalars()]
        return tuple(bundle for bundle in found if bundle is not None)

    def audit(self, limit: int = 100) -> tuple[AuditEntry, ...]:
        """The latest orders of operators, newest first."""
        with translated(self.name), self._reader.connect() as connection:
            return tuple(audit_entry(row) for row in connection.execute(sql.latest_audit(limit)))

    def events(self, after_id: int = 0, limit: int = 100) -> EventPage:
        """The events after a number, oldest first."""
        statement = sql.events_after(after_id, limit)
        with translated(self.name), self._reader.connect() as connection:
            oldest, newest = connection.execute(sql.EVENT_SPAN).one()
            rows = tuple(event_record(row) for row in connection.execute(statement))
        return EventPage(rows, oldest or 0, newest or 0)

    def events_of(
        self, component_id: str | None, *, since_wall_ms: int = 0, limit: int = 100
    ) -> tuple[EventRecord, ...]:
        """The latest events about one worker, newest first; None: events that are not about a worker."""
        statement = sql.events_of(component_id, since_wall_ms, limit)
        with translated(self.name), self._reader.connect() as connection:
            return tuple(event_record(row) for row in connection.execute(statement))

    def lives(self, component_id: str) -> Lives:
        """The number of a worker's stored deaths, and the uptime before them."""
        with translated(self.name), self._reader.connect() as connection:
            deaths, uptime_ms = connection.execute(sql.lives(component_id)).one()
        return Lives(deaths, int(uptime_ms or 0))

    def usages(
        self, component_id: str, *, since_wall_ms: int = 0, limit: int = 100
    ) -> tuple[UsageNoted, ...]:
        """What a worker used, newest first."""
        statement = usages_of(component_id, since_wall_ms, limit)
        with translated(self.name), self._reader.connect() as connection:
            return tuple(usage_noted(row) for row in connection.execute(statement))

    def runs(self, component_id: str, *, limit: int = 100) -> tuple[Run, ...]:
        """The runs of a scheduled worker, newest first."""
        with translated(self.name), self._reader.connect() as connection:
            return tuple(run_of(row) for row in connection.execute(runs_of(component_id, limit)))

    def alerts(self) -> tuple[Alert, ...]:
        """All active alerts and the latest resolved ones, oldest first."""
        with translated(self.name), self._reader.connect() as connection:
            return load_alerts(connection)

    def commit(self, records: Sequence[Record]) -> tuple[JobSettled, ...]:
        """Write the records in one transaction, in order; return the outcome of released jobs.

        Raises:
            StoreUnavailableError: nothing was written; a retry may help.
            StoreDamagedError: nothing was written, and a retry will not help.
            RecordRefusedError: nothing was written, because one of the records cannot be.
            StoreOwnedError: another supervisor took over while the server was unreachable.
        """
        if self._has_waiting:
            self._take_back_first()
        settled = self._commit(records)
        if self._mark is not None:
            self._mark.clear()  # a later batch contains all records that could not be written before
        return settled

    def _take_back_first(self) -> None:
        """Write what former runs kept aside before this run writes: else not all of it would count."""
        try:
            self.take_back()
        except StoreUnavailableError as error:
            if not isinstance(error.__cause__, OSError):  # else the file is the problem, and stays
                raise
        self._has_waiting = False

    def _commit(self, records: Sequence[Kept]) -> tuple[JobSettled, ...]:
        if self._jobs_elsewhere is None:
            return self._written(records)
        ended = [record for record in records if isinstance(record, JobRecord)]
        settled = self._written([record for record in records if not isinstance(record, JobRecord)])
        self._jobs_elsewhere.release(ended)  # the deaths are recorded by now
        return settled

    def _written(self, records: Sequence[Kept]) -> tuple[JobSettled, ...]:
        self._confirm()
        self._under_way = records
        records = self._without_stored(records)
        is_written = False
        try:
            with self._precedence, self._writing:
                settled = self._records.write(records)
                is_written = True
        except self._writing.errors as error:
            self._writing.drop()
            self._in_doubt = tuple(records) if is_written else ()
            raise commit_failure(self.name, error) from error
        finally:
            self._under_way = ()
            if self._closed:
                self._writing.drop()
        if not settled:
            return ()
        ended = any(job.state != JobState.PENDING for job in settled)  # jobs after it may be due
        self.jobs.wake_workers(self.jobs.served() if ended else {job.queue for job in settled})
        return settled

    def _without_stored(self, records: Sequence[Kept]) -> Sequence[Kept]:
        """The records without those of a commit whose answer was lost, if it happened.

        Most records may be repeated. A reset may not, if a death of the same worker follows it in the
        batch: the death is known by then and would not be counted again. Nor may an order in the audit.
        """
        asked = witness(self._in_doubt)
        if asked is not None:
            with translated(self.name), self._reader.connect() as connection:
                is_stored = connection.execute(asked).first() is not None
            if is_stored:
                stored = {id(record) for record in self._in_doubt}
                records = [record for record in records if id(record) not in stored]
        self._in_doubt = ()
        return records

    def prune(self, retention: Retention, now_wall_ms: int) -> bool:
        """Delete a chunk of the rows that are too old; return whether there may be more.

        Raises:
            StoreUnavailableError: nothing was deleted; a retry may help.
        """
        self._confirm()
        try:
            with self._precedence, self._writing:
                return self._pruning.step(self._writing.connection, retention, now_wall_ms)
        except self._writing.errors as error:
            self._writing.drop()
            raise failure(self.name, error) from error

    def keep_aside(self, records: Sequence[Record], run: str) -> str | None:
        """Keep records in a file; its path, or None if there is no place for it."""
        if self._spool is None:
            return None
        self._kept_aside = self._kept_aside or free_spool(self._spool)
        if self._kept_aside is None:
            logger.error("store: too many files beside {} wait to be read", self._spool)
            return None
        try:
            doubtful = (*self._in_doubt, *self._under_way)
            write_spool(self._kept_aside, records, run, doubtful, self._former_run)
        except OSError as error:
            logger.error("store: {} cannot be written: {}", self._kept_aside, error.strerror)
            return None
        return str(self._kept_aside)

    def keep_mark(self, up_to: int) -> bool:
        """Keep in a file, until the next commit, that numbers of processes up to this one may be used."""
        return self._mark is not None and self._mark.raise_to(up_to)

    def waiting_files(self) -> list[Path]:
        """The files of records that former runs kept aside, and that are not in the database yet."""
        return [] if self._spool is None else spools_at(self._spool)

    def take_back(self) -> int:
        """Write what former runs kept aside, each file in one transaction, and delete the files.

        Raises:
            StoreUnavailableError: a file could not be taken in; it is still there.
        """
        count = 0
        for file in self.waiting_files():
            with translated(self.name), self._reader.connect() as connection:
                meta = {row.key: row.value for row in connection.execute(sql.LOAD_META)}
            try:
                spool = read_spool(file, meta)
                if spool is not None:
                    self._in_doubt = spool.in_doubt
                    self._commit((*spool.records, MetaSet(TAKEN, spool.name)))
                    count += len(spool.records)
                file.unlink(missing_ok=True)
            except OSError as error:
                raise StoreUnavailableError(f"{file} cannot be taken in: {error.strerror}") from error
            except Exception as error:  # one bad record must not prevent every start
                if isinstance(error, StoreError) and not isinstance(error, RecordRefusedError):
                    raise
                away = put_damaged_away(file)
                logger.error("store: records of a former run cannot be taken in; see {}: {!r}", away, error)
        return count

    @property
    def lock(self) -> int | None:
        """What holds the exclusive right to the database: a descriptor, or the number of a session."""
        return self._ownership.holder

    @property
    def has_file(self) -> bool:
        """Whether the database is a file of this machine."""
        return self._database is not None

    def close(self) -> None:
        """Close files and connections. Safe to call twice."""
        self._closed = True
        if not self._under_way:  # else the thread that commits does it: closing a busy connection would wait
            self._writing.drop()
        self._precedence.close()
        self.jobs.close()
        if self._database is not None and not isinstance(self._ownership, Unowned):
            remove_notices(str(self._database))
        self._ownership.release()

    def _confirm(self) -> None:
        if self._closed:
            raise StoreUnavailableError(f"the store {self.name} is closed")
        self._ownership.confirm()
