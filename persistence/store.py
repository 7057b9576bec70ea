"""`SqlStore`: restart history in SQLite or PostgreSQL.

One connection is kept for writing, for the one thread that commits. Each read opens a connection of
its own, so a gateway may read while the store writer commits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from rekindle.actors.deaths.crash_bundle import Bundle
from rekindle.actors.deaths.death import Action
from rekindle.actors.errors import StoreUnavailableError
from rekindle.actors.facts.alert import Alert
from rekindle.actors.facts.audit_entry import AuditEntry
from rekindle.actors.facts.jobs import JobSettled
from rekindle.actors.facts.records import (
    AlertKept,
    AlertsForgotten,
    ClaimsReleased,
    DeathAmended,
    DeathRecord,
    EndKept,
    EventPage,
    EventRecord,
    FormerClaimsReleased,
    HealthMirrored,
    Lives,
    MetaSet,
    MirrorWiped,
    Record,
    ReleaseNoted,
    Remembered,
    RestartReset,
    RestartsCounted,
    StateRemoved,
    StreakCleared,
    UsageNoted,
)
from rekindle.actors.spec.retention_policy import Retention

from .database.database_file import SameFile
from .database.driver_errors import failure, translated
from .database.ownership import Ownership, Unowned
from .database.write_connection import Writing
from .database.write_priority import Precedence
from .jobs.claim_release import release_claims, release_former_claims
from .jobs.job_queue import JobQueue
from .retention import Pruning
from .sql import statements as sql
from .sql.alert_rows import alert_values, forget_alerts, load_alerts
from .sql.compiled import DeathStatements
from .sql.decoding import audit_entry, death_record, event_record, remembered
from .sql.encoding import (
    MOST_BUNDLES,
    PRUNED_EVERY,
    audit_values,
    bundle_from,
    bundle_values,
    death_values,
    event_values,
    health_values,
    pruned,
    stand_in,
    storable,
)
from .sql.usage_rows import usage_noted, usage_values, usages_of


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


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
        wall_ms: Callable[[], int] = _wall_ms,
    ) -> None:
        self.name = name
        self.address = address
        """Where a worker finds the queues. It contains the password: do not log it."""
        self.jobs = JobQueue(writer, reader, name=name, database=database)
        self._precedence = Precedence(database)
        self._writer = writer
        self._reader = reader
        self._ownership = ownership or Unowned()
        self._wall_ms = wall_ms
        self._pruning = Pruning()
        file = None if database is None else SameFile(database)
        self._writing = Writing(writer, file, when_connected)
        self._closed = False
        self._upserts = sql.upserts(writer.dialect.name)
        self._hot = DeathStatements(self._upserts, writer.dialect)
        self._keep: dict[type[Record], Callable[[list[Any]], None]] = {
            DeathRecord: self._keep_deaths,
            DeathAmended: self._amend_deaths,
            EndKept: self._keep_ends,
            ReleaseNoted: self._note_releases,
            RestartsCounted: self._count_lost_restarts,
            StreakCleared: self._clear_streaks,
            RestartReset: self._reset,
            StateRemoved: self._remove,
            MetaSet: self._set_meta,
            HealthMirrored: self._mirror,
            MirrorWiped: self._wipe_mirror,
            AuditEntry: self._add_audit,
            EventRecord: self._keep_events,
            ClaimsReleased: self._release_claims,
            FormerClaimsReleased: self._release_former_claims,
            AlertKept: self._keep_alerts,
            AlertsForgotten: self._forget_alerts,
            UsageNoted: self._note_usages,
        }
        self._settled: list[JobSettled] = []
        """The outcome of the jobs whose claims the open transaction releases."""

    def load(self) -> Remembered:
        """The history that a supervisor starts from."""
        with translated(self.name), self._reader.connect() as connection:
            return remembered(
                connection.execute(sql.LOAD_POLICIES),
                connection.execute(sql.LOAD_RECENT_DEATHS),
                connection.execute(sql.LOAD_META),
                connection.execute(sql.EVENT_SPAN).one()[1] or 0,
                connection.execute(sql.LOAD_TRACES),
            )

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

    def alerts(self) -> tuple[Alert, ...]:
        """All active alerts and the latest resolved ones, oldest first."""
        with translated(self.name), self._reader.connect() as connection:
            return load_alerts(connection)

    def commit(self, records: Sequence[Record]) -> tuple[JobSettled, ...]:
        """Write the records in one transaction, in order; return the outcome of released jobs.

        Raises:
            StoreUnavailableError: nothing was written; a retry may help.
            StoreDamagedError: nothing was written, and a retry will not help.
            StoreOwnedError: another supervisor took over while the server was unreachable.
        """
        self._confirm()
        self._settled = []
        try:
            with self._precedence, self._writing:
                for kind, run in groupby(records, type):
                    self._keep[kind](list(run))
        except self._writing.errors as error:
            self._writing.drop()
            raise failure(self.name, error) from error
        return tuple(self._settled)

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

    def close(self) -> None:
        """Close files and connections. Safe to call twice."""
        self._closed = True
        self._writing.drop()
        self._precedence.close()
        self.jobs.close()
        self._ownership.release()

    def _confirm(self) -> None:
        if self._closed:
            raise StoreUnavailableError(f"the store {self.name} is closed")
        self._ownership.confirm()

    def _keep_deaths(self, deaths: list[DeathRecord]) -> None:
        kept = [death for death in deaths if self._add_death(death)]
        for action, run in groupby(kept, lambda death: death.action):
            if action in self._hot.count:
                self._hot.count[action].run_all(self._writing.cursor, [_counted(death) for death in run])
        self._keep_bundles([death.bundle for death in kept if death.bundle is not None])

    def _keep_events(self, events: list[EventRecord]) -> None:
        self._hot.add_event.run_all(self._writing.cursor, [event_values(event) for event in events])

    def _add_death(self, death: DeathRecord) -> bool:
        """Add a death; return whether it is new."""
        return self._hot.add_death.run(self._writing.cursor, death_values(death)) == 1

    def _keep_bundles(self, bundles: list[Bundle]) -> None:
        cursor = self._writing.cursor
        self._hot.keep_bundle.run_all(cursor, [bundle_values(bundle) for bundle in bundles])
        for bundle in bundles:
            if bundle.generation > MOST_BUNDLES and bundle.generation % PRUNED_EVERY == 0:
                self._hot.prune_bundles.run(cursor, pruned(bundle))

    def _count_lost_restarts(self, counted: list[RestartsCounted]) -> None:
        new = [record for record in counted if self._add_death(stand_in(record))]
        rows = [
            {
                "worker": record.component_id,
                "restarts": record.restarts,
                "streak": record.streak,
                "at": record.at_wall_ms,
            }
            for record in new
        ]
        if rows:
            self._writing.execute(self._upserts.count_lost_restarts, rows)

    def _amend_deaths(self, amended: list[DeathAmended]) -> None:
        rows = [
            {
                "worker": record.component_id,
                "number": record.generation,
                "code": record.exit_code,
                "signum": record.signal,
            }
            for record in amended
        ]
        self._writing.execute(sql.AMEND_DEATH, rows)
        self._keep_bundles([record.bundle for record in amended if record.bundle is not None])

    def _keep_ends(self, ends: list[EndKept]) -> None:
        self._keep_bundles([record.bundle for record in ends])

    def _note_releases(self, noted: list[ReleaseNoted]) -> None:
        rows = [
            {
                "worker": record.component_id,
                "number": record.generation,
                "item": storable(record.work_item),
                "outcome": storable(record.outcome),
            }
            for record in noted
        ]
        self._writing.execute(sql.NOTE_RELEASE, rows)

    def _clear_streaks(self, cleared: list[StreakCleared]) -> None:
        self._writing.execute(sql.CLEAR_STREAK, [_at(record) for record in cleared])

    def _reset(self, resets: list[RestartReset]) -> None:
        self._writing.execute(sql.RESET, [_at(record) for record in resets])

    def _remove(self, removed: list[StateRemoved]) -> None:
        rows = [{"worker": record.component_id} for record in removed]
        self._writing.execute(sql.REMOVE_STATE, rows)
        self._writing.execute(sql.REMOVE_MIRROR, rows)

    def _set_meta(self, settings: list[MetaSet]) -> None:
        for record in settings:
            if record.value is None:
                self._writing.execute(sql.REMOVE_META, {"name": record.key})
            else:
                values = {"key": record.key, "value": storable(record.value)}
                self._writing.execute(self._upserts.set_meta, values)

    def _mirror(self, mirrored: list[HealthMirrored]) -> None:
        now = self._wall_ms()
        self._writing.execute(self._upserts.mirror, [health_values(record, now) for record in mirrored])

    def _add_audit(self, entries: list[AuditEntry]) -> None:
        self._writing.execute(sql.ADD_AUDIT, [audit_values(entry) for entry in entries])

    def _release_claims(self, released: list[ClaimsReleased]) -> None:
        for record in released:
            self._settled += release_claims(self._writing.connection, record)

    def _release_former_claims(self, released: list[FormerClaimsReleased]) -> None:
        for record in released:
            self._settled += release_former_claims(self._writing.connection, record)

    def _keep_alerts(self, kept: list[AlertKept]) -> None:
        # The latest state of each: one statement must not change a row twice.
        latest = {record.alert.id: record.alert for record in kept}
        self._writing.execute(self._upserts.keep_alert, [alert_values(alert) for alert in latest.values()])

    def _forget_alerts(self, forgotten: list[AlertsForgotten]) -> None:
        forget_alerts(self._writing.connection, [id_ for record in forgotten for id_ in record.ids])

    def _note_usages(self, noted: list[UsageNoted]) -> None:
        self._writing.execute(self._upserts.note_usage, [usage_values(record) for record in noted])

    def _wipe_mirror(self, _wiped: list[MirrorWiped]) -> None:
        self._writing.execute(sql.WIPE_MIRROR)


def _counted(death: DeathRecord) -> dict[str, Any]:
    row = {
        "worker": death.component_id,
        "at": death.died_at_wall_ms,
        "kept": 0 if death.streak_cleared else 1,
    }
    if death.action is Action.MARK_FAILED:
        row["reason"] = storable(death.reason)
        row["version"] = death.version
    return row


def _at(record: StreakCleared | RestartReset) -> dict[str, Any]:
    return {"worker": record.component_id, "at": record.at_wall_ms}
