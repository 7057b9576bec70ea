"""Pure: whether all is well, in one answer for probes and scripts.

A worker that runs and is healthy is well, and so is one that an operator stopped or paused, or that
finished. One that crashed, was given up, or is unhealthy or recovering is a problem. A worker that is
starting is not a problem, but the system is not ready while it does.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from ..facts.health_status import ShownStatus, Status
from ..messages import StatusReport, WorkerStatus


class HealthSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the workers are well."""

    healthy: bool
    """There is no problem."""
    ready: bool
    """There is no problem, and no worker is still starting."""
    problems: tuple[str, ...]
    """One sentence for each."""
    workers: int
    """How many were looked at."""


def health_summary(
    report: StatusReport, ids: Collection[str] = (), max_age_s: float | None = None
) -> HealthSummary:
    """The health of these workers, or of all and the store.

    Args:
        report: every worker.
        ids: the workers to look at; empty: all.
        max_age_s: how old the last heartbeat may be, for workers that send heartbeats.
    """
    workers = [each for each in report.workers if not ids or each.component_id in ids]
    found = [problem for each in workers if (problem := _problem(each, max_age_s)) is not None]
    if report.degraded is not None and not ids:
        found.append(f"the store is unavailable: {report.degraded}")
    is_starting = any(each.shown is ShownStatus.STARTING for each in workers)
    return HealthSummary(
        healthy=not found,
        ready=not found and not is_starting,
        problems=tuple(found),
        workers=len(workers),
    )


def _problem(worker: WorkerStatus, max_age_s: float | None) -> str | None:
    id_, age = worker.component_id, worker.heartbeat_age_s
    if worker.shown is ShownStatus.FAILED:
        return f"{id_} was given up: {worker.failure_reason or worker.why}"
    if worker.paused:
        return None
    if worker.schedule is not None and worker.schedule.overdue:
        return f"{id_} has not succeeded for two periods of its schedule"
    if worker.shown is ShownStatus.CRASHED:
        return f"{id_} crashed: {worker.why}"
    if worker.status in (Status.UNHEALTHY, Status.RECOVERING):
        return f"{id_} is {worker.status}"
    if max_age_s is not None and age is not None and age > max_age_s:
        return f"{id_} was last heard from {age:.0f} s ago"
    return None
