"""Pure: decodes rows into the records of the actors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from rekindle.actors.deaths.death import Action, Cause
from rekindle.actors.facts.audit_entry import AuditEntry, AuditResult
from rekindle.actors.facts.generations import EVERY_OTHER, LostLife
from rekindle.actors.facts.records import DeathRecord, EventRecord, Remembered, RememberedWorker

from .encoding import job_from

# A hand-edited or newer row must not keep a supervisor from starting.
_CAUSES = {cause.value: cause for cause in Cause}
_ACTIONS = {action.value: action for action in Action}
_RESULTS = {result.value: result for result in AuditResult}

_COUNTERS = (
    "restart_count",
    "streak_count",
    "last_restart_wall_ms",
    "failed_at_wall_ms",
    "failure_reason",
    "failed_fingerprint",
)


def remembered(
    policies: Iterable[Any],
    deaths: Iterable[Any],
    meta: Iterable[Any],
    last_event_id: int,
    traces: Iterable[Any],
    numbers: Sequence[Any],
    seen_at_wall_ms: int,
) -> Remembered:
    """The history that a supervisor starts from; the deaths of a worker come oldest first."""
    stamps: dict[str, list[int]] = defaultdict(list)
    last: dict[str, Any] = {}
    for death in deaths:
        worker, _, died_at, *_ = death
        # A breaker was open, or its supervisor was killed, or no limit counts it: the death does not count.
        if (
            death.action not in (Action.HELD, Action.RESTART_UNCOUNTED)
            and death.cause != Cause.SUPERVISOR_LOST
        ):
            stamps[worker].append(died_at)
        last[worker] = death
    counters = {row.component_id: row for row in policies}
    workers = {
        worker: _worker(counters.get(worker), last.get(worker), stamps.get(worker, []))
        for worker in {**counters, **last}
    }
    return Remembered(
        workers=MappingProxyType(workers),
        meta=MappingProxyType({row.key: row.value for row in meta}),
        last_event_id=last_event_id,
        generations=MappingProxyType(used_generations(numbers, traces)),
        lost=lost_lives(numbers, {worker: row.generation for worker, row in last.items()}, seen_at_wall_ms),
        seen_at_wall_ms=seen_at_wall_ms,
        started=MappingProxyType(started_generations(numbers)),
    )


def started_generations(rows: Iterable[Any]) -> dict[str, int]:
    """The latest number of each worker whose start or stop is recorded."""
    return {row.component_id: max(row.started, row.ended) for row in rows}


def used_generations(rows: Iterable[Any], traces: Iterable[Any]) -> dict[str, int]:
    """The highest number that each worker may have used, its deaths left aside."""
    used = {row.component_id: int(row.reserved) for row in rows}
    unnamed = used.get(EVERY_OTHER, 0)
    for worker, generation in traces:
        used[worker] = max(generation, used.get(worker, unnamed))
    return used


def raised(used: Mapping[str, int], mark: int) -> Mapping[str, int]:
    """The numbers that may have been used, if a former run may have used all up to the mark."""
    if not mark:
        return used
    return {worker: max(number, mark) for worker, number in {EVERY_OTHER: 0, **used}.items()}


def lost_lives(rows: Iterable[Any], died: Mapping[str, int], seen_at: int) -> tuple[LostLife, ...]:
    """The processes that were started and have no end: no stop, and no death of that number or later.

    By name, so that the same state always leads to the same decisions in the same order.
    """
    return tuple(
        LostLife(row.component_id, row.started, row.started_at_wall_ms, max(seen_at, row.started_at_wall_ms))
        for row in sorted(rows, key=lambda row: str(row.component_id))
        if row.started > max(row.ended, died.get(row.component_id, 0))
    )


_DEATH_FIELDS = frozenset(DeathRecord.__struct_fields__)


def death_record(row: Any) -> DeathRecord:
    """The record of a death row, with the columns that it has: an older store has fewer."""
    values = {name: value for name, value in row._mapping.items() if name in _DEATH_FIELDS}
    values["cause"] = _CAUSES.get(row.cause, Cause.UNKNOWN)
    values["action"] = _ACTIONS.get(row.action, Action.NONE)
    values["job"] = job_from(row.job)
    return DeathRecord(**values)


def event_record(row: Any) -> EventRecord:
    """The event of a row."""
    return EventRecord(
        id=row.id,
        at_wall_ms=row.at_wall_ms,
        type=row.type,
        component_id=row.component_id,
        payload=row.payload,
        schema_version=row.schema_version,
    )


def _worker(counters: Any | None, last: Any | None, stamps: list[int]) -> RememberedWorker:
    # The deaths before a reset stay as history, but do not count.
    reset_at = -1 if counters is None or counters.reset_at_wall_ms is None else counters.reset_at_wall_ms
    history: dict[str, Any] = {"recent_deaths_wall_ms": tuple(at for at in stamps if at > reset_at)}
    if last is not None:
        history["last_generation"] = last.generation
        if last.action == Action.RESTART and last.died_at_wall_ms > reset_at:
            history["restart_due_wall_ms"] = last.died_at_wall_ms + last.delay_ms
    if counters is not None:
        history.update({name: getattr(counters, name) for name in _COUNTERS})
    return RememberedWorker(**history)


def audit_entry(row: Any) -> AuditEntry:
    """The order of an audit row."""
    return AuditEntry(
        at_wall_ms=row.at_wall_ms,
        gateway=row.gateway,
        uid=row.uid,
        pid=row.pid,
        claimed_user=row.claimed_user,
        action=row.action,
        target=row.target,
        detail=row.detail,
        result=_RESULTS.get(row.result, AuditResult.UNKNOWN),
        reason=row.reason,
    )
