"""Pure: what a pause, a stop or a failure puts off, and until when."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from ..messages import Done, Refused
from ..spec.spec_changes import Changes
from ..spec.validation import LONGEST_S
from .pauses import EVERYTHING, Pauses
from .worker import (
    BackingOff,
    Failed,
    Idle,
    Rest,
    Stopping,
    Up,
    Worker,
)


def put_off(changes: Changes, workers: Iterable[tuple[Worker, bool]]) -> Changes:
    """The changes, with those named that got no new process; each worker comes with whether it is paused."""
    kinds = [(worker.id, _awaited(worker, paused)) for worker, paused in workers]

    def waiting(kind: str) -> tuple[str, ...]:
        return tuple(id_ for id_, awaited in kinds if awaited == kind)

    return replace(
        changes,
        stays_failed=waiting("stays_failed"),
        when_resumed=waiting("when_resumed"),
        when_started=waiting("when_started"),
        when_restarted=waiting("when_restarted"),
    )


def _awaited(worker: Worker, paused: bool) -> str | None:
    """The field of `Changes` that says when a change takes effect; None if it does now."""
    match worker.phase:
        case Failed():
            return "stays_failed"
        case _ if paused and is_resumable(worker):
            return "when_resumed"
        case Up() | Stopping(relaunch=True):
            return None
        case BackingOff() | Idle(rest=Rest.HELD):
            return "when_restarted"
        case Stopping() | Idle():
            return "when_started"


def is_resumable(worker: Worker) -> bool:
    """Whether the end of a pause has it running; one that is down for another reason stays down."""
    match worker.phase:
        case Up() | Stopping(relaunch=True):
            return True
        case Idle(rest=rest) | Stopping(rest=rest):
            return rest in (Rest.PAUSED, Rest.RESET)
        case BackingOff() | Failed():
            return False


def impossible_length(for_s: float | None) -> Refused | None:
    """Why a pause cannot last for so many seconds."""
    if for_s is None or 0 < for_s <= LONGEST_S:
        return None
    return Refused(f"a pause lasts for more than 0 and at most {LONGEST_S:g} seconds, not {for_s:g}")


def paused(workers: Iterable[Worker], pauses: Pauses, verb: str) -> Refused | None:
    """Why the first of them that is paused is not started, and what starts it."""
    held = next((worker for worker in workers if pauses.holds(worker.id)), None)
    if held is None:
        return None
    # That of everything first: while it lasts, a worker cannot be resumed alone.
    whose = EVERYTHING if pauses.everything else held.id
    reason = pauses.by_id[whose].reason
    why = f" ({reason})" if reason else ""
    it, scope = ("it", "") if whose else ("everything", " with everything")
    then = "to start it" if is_resumable(held) else f"first, then {verb} it"
    return Refused(f"{held.id} is paused{scope}{why}; resume {it} {then}", paused=whose)


def answer_to_start(workers: Sequence[Worker], pauses: Pauses) -> Done | Refused:
    """What somebody is told who wants these started."""
    running = [isinstance(worker.phase, Up) and worker.phase.pid is not None for worker in workers]
    return paused(workers, pauses, "start") or Done(already=bool(running) and all(running))


def answer_to_resume(workers: Iterable[Worker], pauses: Pauses, ids: Sequence[str] | None) -> Done:
    """What somebody is told who wants a pause of these, or of everything, to end."""
    is_paused = any(id_ in pauses.by_id for id_ in ids or (EVERYTHING,))
    # Those that were reset wait for a resume too, whether anything is paused or not.
    waits = any(worker.phase == Idle(Rest.RESET) and not pauses.holds(worker.id) for worker in workers)
    return Done(already=not is_paused and not waits)
