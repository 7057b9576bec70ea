"""Pure: what a pause, a stop or a failure puts off, and until when."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from .changes import Changes
from .worker_state import BackingOff, Failed, Idle, Rest, Stopping, Up, Worker


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
