"""Pure: a failure holds for the version that failed, where the policy says so.

    failed ─(another version, clear_failed_on_change)─▶ idle, counters 0 ─▶ up

Which version a worker is now comes in with the `World`, from the caller that read the files. A
version that is not known, then or now, lifts nothing, and the same one stays failed for good.
"""

from __future__ import annotations

from msgspec.structs import replace

from .. import supervision
from ..deaths.evidence import changed, tells_of_code
from ..facts.records import RestartReset
from ..messages import FailureLifted
from ..rules.restarts import RestartState
from .worker import (
    Announce,
    CancelTimers,
    Failed,
    Idle,
    KeepRecord,
    Rest,
    StopMonitoring,
    SupervisedWorker,
    WorkerStep,
    World,
)


def clear_if_changed(worker: SupervisedWorker, world: World) -> WorkerStep:
    """Clear counters and failure of a failed worker that is another version now; nothing is started."""
    phase = worker.phase
    if not isinstance(phase, Failed) or not worker.spec.restart.clear_failed_on_change:
        return WorkerStep(worker)
    old, new = phase.version, world.version
    what = changed(old, new)
    if what is None or old is None or new is None:
        return WorkerStep(worker)
    worker = replace(worker, phase=Idle(Rest.RESET), status=None, restarts=RestartState(), not_before_ms=None)
    clear = KeepRecord(RestartReset(worker.id, world.wall_ms))
    lifted = Announce(FailureLifted(worker.id, old, new, what))
    return WorkerStep(worker, (CancelTimers(), clear, lifted, StopMonitoring()))


def refusal(worker: SupervisedWorker, world: World) -> str | None:
    """Why starting a failed worker does not lift its failure, and what does; None if it does."""
    phase = worker.phase
    if not isinstance(phase, Failed) or not isinstance(clear_if_changed(worker, world).worker.phase, Failed):
        return None
    if not worker.spec.restart.clear_failed_on_change:
        why = "starting it does not lift that"
    elif phase.version is None or world.version is None:
        why = "which version of it failed, or is there now, is not known"
    elif not tells_of_code(world.version):
        why = "its code cannot be read, so it is not known whether it changed"
    else:
        why = "it is still the version that failed"
    remedy = "restart clears that and starts it, reset clears it"
    return f"{worker.id} is failed ({phase.reason}), and {why}: {remedy}"


def start(worker: SupervisedWorker, world: World) -> WorkerStep:
    """Have it running, a failed one only if it is another version now."""
    lifted = clear_if_changed(worker, world)
    begun = supervision.start(lifted.worker, world)
    return WorkerStep(begun.worker, (*lifted.effects, *begun.effects))
