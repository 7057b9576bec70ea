"""Pure: what the events of a node's journal mean for the tenure of a worker."""

from __future__ import annotations

from msgspec.structs import replace

from ...deaths.death import Action
from ...facts.health_status import Status
from ...facts.records import RECENT_DEATHS, RememberedWorker
from ...messages import FailureLifted, StatusChanged, WorkerDied, WorkerFailed, WorkerReset
from ..facts.tenures import Assignment, Tenure

CountedEvent = StatusChanged | WorkerDied | WorkerFailed | WorkerReset | FailureLifted
"""The events that change a tenure."""


def begun(assignment: Assignment, node_id: str, known: RememberedWorker) -> Tenure:
    """A tenure at its beginning: it hands on the streak and the failure that the worker brings along."""
    return Tenure(
        component_id=assignment.component_id,
        epoch=assignment.epoch,
        node_id=node_id,
        began_ms=assignment.since_ms,
        streak=known.streak_count,
        last_restart_ms=known.last_restart_wall_ms,
        failed_at_wall_ms=known.failed_at_wall_ms,
        failure_reason=known.failure_reason,
        timetable=known.timetable,
    )


def after_event(
    tenure: Tenure, number: int, at_ms: int, event: CountedEvent, *, counts: bool = True
) -> Tenure:
    """The tenure after an event with this number; one that it knows already changes nothing.

    With `counts` false it is the end of a process that no longer had the right to run: the node killed it.
    """
    if number <= tenure.noted:
        return tenure
    if isinstance(event, StatusChanged):
        is_news = event.new is Status.HEALTHY and tenure.ready_ms is None
        return replace(tenure, ready_ms=at_ms, noted=number) if is_news else tenure
    tenure = replace(tenure, noted=number)
    match event:
        case WorkerReset() | FailureLifted():
            return replace(
                tenure,
                restarts=0,
                streak=0,
                last_restart_ms=None,
                recent_deaths_ms=(),
                failed_at_wall_ms=None,
                failure_reason=None,
                reset_at_wall_ms=at_ms,
            )
        case _ if not counts:
            return tenure
        case WorkerFailed(reason=reason):
            return replace(tenure, failed_at_wall_ms=at_ms, failure_reason=reason)
        case WorkerDied(action=Action.RESTART, streak_count=streak, death=death):
            return replace(
                tenure,
                restarts=tenure.restarts + 1,
                streak=streak,
                last_restart_ms=at_ms,
                recent_deaths_ms=(*tenure.recent_deaths_ms, at_ms)[-RECENT_DEATHS:],
                last_generation=max(tenure.last_generation, death.generation),
            )
        case WorkerDied(done=True):
            return replace(tenure, done_ms=at_ms)
        case WorkerDied(death=death):
            return replace(
                tenure,
                recent_deaths_ms=(*tenure.recent_deaths_ms, at_ms)[-RECENT_DEATHS:],
                last_generation=max(tenure.last_generation, death.generation),
            )
