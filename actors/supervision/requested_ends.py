"""Pure: the evidence of an end that an operator asked for. It is no death, and counts for nothing.

Whoever asks later why a worker is down, or what it was at when it had to be killed, finds it
beside the evidence of its deaths.
"""

from __future__ import annotations

from ..deaths.crash_bundle import bundle_of
from ..deaths.death import Death, Exit
from ..deaths.evidence import Remains
from ..facts.records import EndKept
from .worker import Effect, KeepRecord, Stopping, Worker, World


def requested_end(
    worker: Worker, phase: Stopping, exit_: Exit, remains: Remains | None, world: World
) -> tuple[Effect, ...]:
    """What is kept of it: nothing where all are stopped, or where nobody saw how it ended."""
    if phase.reason is None or not phase.reason.is_an_order or world.stopping or exit_ == Exit():
        return ()
    ended = Death(
        component_id=worker.id,
        generation=phase.generation,
        cause=exit_.cause,
        exit=exit_,
        detail=phase.reason.value,
        uptime_ms=max(0, world.now_ms - phase.since_ms),
        job=worker.job,
    )
    return (KeepRecord(EndKept(bundle_of(ended, world.wall_ms, exit_, remains, asked=True))),)
