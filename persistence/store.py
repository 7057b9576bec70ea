"""`SqlStore`: restart history in SQLite or PostgreSQL.

One connection is kept for writing, by the one thread that commits. `load` and `deaths`
bring a connection of their own, so an edge may read while the recorder writes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from rekindle.actors.errors import StoreUnavailableError
from rekindle.actors.records import (
    DeathAmended,
    DeathRecord,
    HealthMirrored,
    MetaSet,
    MirrorWiped,
    Record,
    Remembered,
    RestartReset,
    RestartsCounted,
    StateRemoved,
    StreakCleared,
)
from rekindle.actors.restarts import Action

from . import statements as sql
from .encoding import death_events, death_values, job_text, stand_in, storable
from .failures import failure, translated
from .ownership import Ownership, Unowned
from .recall import death_record, remembered

Rows = list[dict[str, Any]]


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
        ownership: Ownership | None = None,
        wall_ms: Callable[[], int] = _wall_ms,
    ) -> None:
        self.name = name
        self._writer = writer
        self._reader = reader
        self._ownership = ownership or Unowned()
        self._wall_ms = wall_ms
        self._kept: Connection | None = None
        self._closed = False
        self._upserts = sql.upserts(writer.dialect.name)
        self._keep: dict[type[Record], Callable[[Connection, list[Any]], None]] = {
            DeathRecord: self._keep_deaths,
            DeathAmended: self._amend_deaths,
            RestartsCounted: self._count_lost_restarts,
            StreakCleared: self._clear_streaks,
            RestartReset: self._reset,
            StateRemoved: self._remove,
            MetaSet: self._set_meta,
            HealthMirrored: self._mirror,
            MirrorWiped: self._wipe_mirror,
        }

    def load(self) -> Remembered:
        """What is known of the past."""
        with translated(self.name), self._reader.connect() as connection:
            return remembered(
                connection.execute(sql.LOAD_POLICIES),
                connection.execute(sql.LOAD_RECENT_DEATHS),
                connection.execute(sql.LOAD_META),
            )

    def deaths(
        self, component_id: str | None = None, *, signal: int | None = None, limit: int = 100
    ) -> tuple[DeathRecord, ...]:
        """The latest deaths, newest first, of one worker or of all."""
        statement = sql.latest_deaths(component_id, signal, limit)
        with translated(self.name), self._reader.connect() as connection:
            return tuple(death_record(row) for row in connection.execute(statement))

    def commit(self, records: Sequence[Record]) -> None:
        """Keep all of them in one transaction, in their order.

        Raises:
            StoreUnavailableError: none was kept; trying again may help.
            StoreDamagedError: none was kept, and trying again will not help.
            StoreOwnedError: the server was gone for a while, and another supervisor took over.
        """
        self._ownership.confirm()
        try:
            connection = self._connection()
            with connection.begin():
                for kind, run in groupby(records, type):
                    self._keep[kind](connection, list(run))
        except SQLAlchemyError as error:
            self._drop_connection()
            raise failure(self.name, error) from error

    def close(self) -> None:
        """Let go of files and connections. Safe to call twice."""
        self._closed = True
        self._drop_connection()
        self._ownership.release()

    def _connection(self) -> Connection:
        if self._closed:
            raise StoreUnavailableError(f"the store {self.name} is closed")
        if self._kept is None:
            self._kept = self._writer.connect()
        return self._kept

    def _drop_connection(self) -> None:
        kept, self._kept = self._kept, None
        if kept is None:
            return
        try:
            kept.close()
        except SQLAlchemyError:
            # It was broken already; the next commit opens another.
            kept.invalidate()

    def _keep_deaths(self, connection: Connection, deaths: list[DeathRecord]) -> None:
        new = self._add_deaths(connection, [death_values(death) for death in deaths])
        kept = [death for death in deaths if _take(new, (death.component_id, death.generation))]
        for action, run in groupby(kept, lambda death: death.action):
            self._count(connection, action, list(run))
        if kept:
            connection.execute(sql.ADD_EVENTS, [event for death in kept for event in death_events(death)])

    def _add_deaths(self, connection: Connection, rows: Rows) -> set[tuple[str, int]]:
        return {(row[0], row[1]) for row in connection.execute(self._upserts.add_deaths, rows)}

    def _count(self, connection: Connection, action: Action, deaths: list[DeathRecord]) -> None:
        match action:
            case Action.RESTART:
                statement = self._upserts.count_restart
            case Action.MARK_FAILED:
                statement = self._upserts.mark_failed
            case Action.NOTIFY_ONLY | Action.NONE:
                return
        connection.execute(statement, [_counted(death) for death in deaths])

    def _count_lost_restarts(self, connection: Connection, counted: list[RestartsCounted]) -> None:
        new = self._add_deaths(connection, [death_values(stand_in(record)) for record in counted])
        rows = [
            {
                "worker": record.component_id,
                "restarts": record.restarts,
                "streak": record.streak,
                "at": record.at_wall_ms,
            }
            for record in counted
            if _take(new, (record.component_id, record.last_generation))
        ]
        if rows:
            connection.execute(self._upserts.count_lost_restarts, rows)

    def _amend_deaths(self, connection: Connection, amended: list[DeathAmended]) -> None:
        rows = [
            {
                "worker": record.component_id,
                "number": record.generation,
                "code": record.exit_code,
                "signum": record.signal,
            }
            for record in amended
        ]
        connection.execute(sql.AMEND_DEATH, rows)

    def _clear_streaks(self, connection: Connection, cleared: list[StreakCleared]) -> None:
        connection.execute(sql.CLEAR_STREAK, [_at(record) for record in cleared])

    def _reset(self, connection: Connection, resets: list[RestartReset]) -> None:
        connection.execute(sql.RESET, [_at(record) for record in resets])

    def _remove(self, connection: Connection, removed: list[StateRemoved]) -> None:
        rows = [{"worker": record.component_id} for record in removed]
        connection.execute(sql.REMOVE_STATE, rows)
        connection.execute(sql.REMOVE_MIRROR, rows)

    def _set_meta(self, connection: Connection, settings: list[MetaSet]) -> None:
        for record in settings:
            if record.value is None:
                connection.execute(sql.REMOVE_META, {"name": record.key})
            else:
                values = {"key": record.key, "value": storable(record.value)}
                connection.execute(self._upserts.set_meta, values)

    def _mirror(self, connection: Connection, mirrored: list[HealthMirrored]) -> None:
        now = self._wall_ms()
        connection.execute(self._upserts.mirror, [_health_values(record, now) for record in mirrored])

    def _wipe_mirror(self, connection: Connection, _wiped: list[MirrorWiped]) -> None:
        connection.execute(sql.WIPE_MIRROR)


def _take(new: set[tuple[str, int]], key: tuple[str, int]) -> bool:
    """Whether the row is new; of two records with one key in a batch only the first one is."""
    if key not in new:
        return False
    new.remove(key)
    return True


def _counted(death: DeathRecord) -> dict[str, Any]:
    row = {
        "worker": death.component_id,
        "at": death.died_at_wall_ms,
        "kept": 0 if death.streak_cleared else 1,
    }
    if death.action is Action.MARK_FAILED:
        row["reason"] = storable(death.reason)
    return row


def _at(record: StreakCleared | RestartReset) -> dict[str, Any]:
    return {"worker": record.component_id, "at": record.at_wall_ms}


def _health_values(record: HealthMirrored, now_wall_ms: int) -> dict[str, Any]:
    return {
        "component_id": record.component_id,
        "generation": record.generation,
        "status": storable(record.status),
        "pid": record.pid,
        "current_job": job_text(record.current_job),
        "last_heartbeat_wall_ms": record.last_heartbeat_wall_ms,
        "updated_at_wall_ms": now_wall_ms,
    }
