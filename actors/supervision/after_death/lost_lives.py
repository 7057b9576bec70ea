"""Pure: the deaths of processes that ended with their supervisor.

A process that was started and has no recorded end was running when the supervisor was killed, or died
in its last moments. The next supervisor records the death. It is history: it does not count against the
budget of the worker, opens no alert, and is not held against a job.
"""

from __future__ import annotations

from ...deaths.death import Action, Cause, Death
from ...facts.generations import LostLife
from ...facts.records import DeathRecord, RememberedWorker
from ...messages import WorkerDied

NOT_COUNTED = "not counted: it ended with its supervisor"


def lost_death(life: LostLife, known: RememberedWorker) -> tuple[DeathRecord, WorkerDied]:
    """The record and the event of one of them; the time is that of the supervisor's last sign of life."""
    uptime_ms = life.seen_at_wall_ms - life.started_at_wall_ms
    record = DeathRecord(
        component_id=life.component_id,
        generation=life.generation,
        died_at_wall_ms=life.seen_at_wall_ms,
        cause=Cause.SUPERVISOR_LOST,
        exit_code=None,
        signal=None,
        uptime_ms=uptime_ms,
        job=None,
        action=Action.NONE,
        reason=NOT_COUNTED,
    )
    death = Death(
        component_id=life.component_id,
        generation=life.generation,
        cause=Cause.SUPERVISOR_LOST,
        uptime_ms=uptime_ms,
    )
    event = WorkerDied(death, record.action, NOT_COUNTED, 0.0, known.restart_count, known.streak_count)
    return record, event
