"""Writes records to the tables, inside the transaction that the store has begun."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from msgspec.structs import replace
from sqlalchemy import Dialect, Executable

from rekindle.actors.deaths.crash_bundle import Bundle
from rekindle.actors.deaths.death import Action
from rekindle.actors.facts.audit_entry import AuditEntry
from rekindle.actors.facts.generations import (
    GenerationEnded,
    GenerationsReserved,
    GenerationsSettled,
    GenerationStarted,
)
from rekindle.actors.facts.jobs import JobSettled
from rekindle.actors.facts.records import (
    AlertKept,
    AlertsForgotten,
    ClaimsReleased,
    DeathAmended,
    DeathRecord,
    EndKept,
    EventRecord,
    FormerClaimsReleased,
    HealthMirrored,
    MetaSet,
    MirrorWiped,
    ReleaseNoted,
    RestartReset,
    RestartsCounted,
    StateRemoved,
    StreakCleared,
    UsageNoted,
)
from rekindle.actors.facts.runs import RunKept

from .database.write_connection import Row, Writing
from .jobs.claim_release import release_claims, release_former_claims
from .spool import Kept, LateDeath
from .sql import statements as sql
from .sql.alert_rows import alert_values, forget_alerts
from .sql.compiled import DeathStatements
from .sql.death_rows import death_values
from .sql.encoding import (
    MOST_BUNDLES,
    PRUNED_EVERY,
    audit_values,
    bundle_values,
    event_values,
    health_values,
    pruned,
    stand_in,
    storable,
)
from .sql.generation_rows import ended_values, reserved_values, settled_values, started_values
from .sql.run_rows import run_values
from .sql.usage_rows import usage_values


class RecordWriter:
    """Knows for every kind of record what it changes."""

    def __init__(self, writing: Writing, dialect: Dialect, wall_ms: Callable[[], int]) -> None:
        self._writing = writing
        self._wall_ms = wall_ms
        self._upserts = sql.upserts(dialect.name)
        self._hot = DeathStatements(self._upserts, dialect)
        self._keep: dict[type[Kept], Callable[[list[Any]], None]] = {
            DeathRecord: self._keep_deaths,
            LateDeath: self._keep_late_deaths,
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
            RunKept: self._keep_runs,
            **self._generation_writers(),
        }
        self._settled: list[JobSettled] = []
        """The outcome of the jobs whose claims the open transaction releases."""

    def write(self, records: Sequence[Kept]) -> tuple[JobSettled, ...]:
        """Write the records in order; return the outcome of the jobs whose claims they release."""
        self._settled = []
        for kind, run in groupby(records, type):
            self._keep[kind](list(run))
        return tuple(self._settled)

    def _keep_deaths(self, deaths: list[DeathRecord]) -> None:
        kept = [death for death in deaths if self._add_death(death)]
        for action, run in groupby(kept, lambda death: death.action):
            if action in self._hot.count:
                self._hot.count[action].run_all(
                    self._writing.cursor, [_counted(death) for death in run], self._writing.observed
                )
        self._keep_bundles([death.bundle for death in kept if death.bundle is not None])

    def _keep_late_deaths(self, late: list[LateDeath]) -> None:
        new = [each for each in late if self._add_death(each.death)]
        self._tell_late([each.event for each in new if each.event is not None])
        kept = [each.death for each in new]
        restarts = [death for death in kept if death.action is Action.RESTART]
        if restarts:
            rows = [{"worker": death.component_id, "at": death.died_at_wall_ms} for death in restarts]
            self._writing.execute(self._upserts.count_late_restart, rows)
        self._keep_bundles([death.bundle for death in kept if death.bundle is not None])

    def _tell_late(self, events: list[EventRecord]) -> None:
        """Give events of a former run the next numbers; their times stay."""
        last = self._writing.connection.scalar(sql.LAST_EVENT) or 0
        self._keep_events([replace(event, id=last + 1 + index) for index, event in enumerate(events)])

    def _keep_events(self, events: list[EventRecord]) -> None:
        rows = [event_values(event) for event in events]
        self._hot.add_event.run_all(self._writing.cursor, rows, self._writing.observed)

    def _add_death(self, death: DeathRecord) -> bool:
        """Add a death; return whether it is new."""
        row = death_values(death)
        return self._hot.add_death.run(self._writing.cursor, row, self._writing.observed) == 1

    def _keep_bundles(self, bundles: list[Bundle]) -> None:
        cursor, observed = self._writing.cursor, self._writing.observed
        self._hot.keep_bundle.run_all(cursor, [bundle_values(bundle) for bundle in bundles], observed)
        for bundle in bundles:
            if bundle.generation > MOST_BUNDLES and bundle.generation % PRUNED_EVERY == 0:
                self._hot.prune_bundles.run(cursor, pruned(bundle), observed)

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

    def _keep_runs(self, kept: list[RunKept]) -> None:
        # The latest state of each: one statement must not change a row twice.
        latest = {(record.run.component_id, record.run.number): record.run for record in kept}
        self._writing.execute(self._upserts.keep_run, [run_values(run) for run in latest.values()])

    def _generation_writers(self) -> dict[type[Kept], Callable[[list[Any]], None]]:
        def writer(statement: Executable, values: Callable[[Any], Row]) -> Callable[[list[Any]], None]:
            return lambda records: self._writing.execute(statement, [values(record) for record in records])

        upserts = self._upserts.generation
        return {
            GenerationsReserved: writer(upserts.reserve, reserved_values),
            GenerationsSettled: writer(upserts.settle, settled_values),
            GenerationStarted: writer(upserts.start, started_values),
            GenerationEnded: writer(upserts.end, ended_values),
        }

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
