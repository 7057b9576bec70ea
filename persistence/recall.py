"""Pure: rows become what the actors know of the past."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter
from types import MappingProxyType
from typing import Any

from rekindle.actors.deaths import Cause
from rekindle.actors.records import DeathRecord, Remembered, RememberedWorker
from rekindle.actors.restarts import Action

from .encoding import job_from

# A hand-edited or newer row must not keep a supervisor from starting.
_CAUSES = {cause.value: cause for cause in Cause}
_ACTIONS = {action.value: action for action in Action}


def remembered(policies: Iterable[Any], deaths: Iterable[Any], meta: Iterable[Any]) -> Remembered:
    """What is known of the past; `deaths` come worker by worker, oldest first."""
    histories = {worker: list(rows) for worker, rows in groupby(deaths, attrgetter("component_id"))}
    counters = {row.component_id: row for row in policies}
    workers = {
        worker: _worker(counters.get(worker), histories.get(worker, []))
        for worker in (*counters, *(histories.keys() - counters.keys()))
    }
    return Remembered(
        workers=MappingProxyType(workers), meta=MappingProxyType({row.key: row.value for row in meta})
    )


def death_record(row: Any) -> DeathRecord:
    """The record that a death row was made of, as far as the row tells."""
    return DeathRecord(
        component_id=row.component_id,
        generation=row.generation,
        died_at_wall_ms=row.died_at_wall_ms,
        cause=_CAUSES.get(row.cause, Cause.UNKNOWN),
        exit_code=row.exit_code,
        signal=row.signal,
        uptime_ms=row.uptime_ms,
        job=job_from(row.job),
        action=_ACTIONS.get(row.action, Action.NONE),
        reason=row.reason,
        delay_ms=row.delay_ms,
    )


def _worker(counters: Any | None, deaths: list[Any]) -> RememberedWorker:
    last = deaths[-1] if deaths else None
    due = last.died_at_wall_ms + last.delay_ms if last and last.action == Action.RESTART else None
    history: dict[str, Any] = {
        "last_generation": last.generation if last else 0,
        "recent_deaths_wall_ms": tuple(row.died_at_wall_ms for row in deaths),
        "restart_due_wall_ms": due,
    }
    if counters is None:
        return RememberedWorker(**history)
    return RememberedWorker(
        restart_count=counters.restart_count,
        streak_count=counters.streak_count,
        last_restart_wall_ms=counters.last_restart_wall_ms,
        failed_at_wall_ms=counters.failed_at_wall_ms,
        failure_reason=counters.failure_reason,
        **history,
    )
