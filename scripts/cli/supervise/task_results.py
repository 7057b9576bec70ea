"""Pure: when a run that has only tasks is over, and with which exit code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rekindle.actors.deaths.death import Action
from rekindle.actors.facts.health_status import ShownStatus
from rekindle.actors.messages import Event, WorkerDied, WorkerStarted, WorkerStatus
from rekindle.actors.spec.policies.schedule import WorkerKind

FAILED = 1
BY_SIGNAL = 128


class TaskResults:
    """How tasks ended; a task that is still to be restarted has no result."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self.end_the_run = True
        """Whether a run that has only tasks is over with them; a node of a cluster may get others."""

    def codes(self) -> dict[str, int]:
        """What is known, for the program that replaces this one."""
        return dict(self._codes)

    def restore(self, codes: Mapping[str, int]) -> None:
        """Go on with what the former program of this process knew."""
        self._codes.update(codes)

    def take(self, event: Event) -> bool:
        """Take an event; whether a worker may have come to rest."""
        match event:
            case WorkerStarted(component_id=id_):
                self._codes.pop(id_, None)
            case WorkerDied(action=Action.NONE | Action.NOTIFY_ONLY | Action.MARK_FAILED):
                self._codes[event.component_id] = _code(event)
                return True
            case _:
                pass
        return False

    def exit_code(self, workers: Sequence[WorkerStatus]) -> int | None:
        """0 if all tasks are done, else the code of the first that was given up.

        None if there are other workers, or a task still runs, will be restarted, is stopped or is paused.
        """
        if not self.end_the_run or not workers or not all(self._is_over(each) for each in workers):
            return None
        failed = (each for each in workers if each.shown is not ShownStatus.DONE)
        return next((self._codes.get(each.component_id) or FAILED for each in failed), 0)

    def _is_over(self, worker: WorkerStatus) -> bool:
        if worker.kind is not WorkerKind.ONCE or worker.paused:
            return False
        given_up = worker.shown is ShownStatus.CRASHED and worker.component_id in self._codes
        return given_up or worker.shown in (ShownStatus.DONE, ShownStatus.FAILED)


def _code(event: WorkerDied) -> int:
    exit_ = event.death.exit
    if exit_.signal is not None:
        return BY_SIGNAL + exit_.signal
    return exit_.code or 0
