"""What an executor orders about its workers: the Supervisor starts, stops and replaces them."""

from __future__ import annotations

from ..messages import ResetWorker, RestartWorker, StartWorkers, StopWorkers
from ..runtime.resilient_actor import tell
from ..spec.policies.stop_policy import Urgency
from ..system.facade import System
from .assignments import Incarnation


class WorkerControl:
    """Used on the thread of the executor."""

    def __init__(self, system: System) -> None:
        self._supervisor = system.supervisor
        self._excused: set[Incarnation] = set()
        self._killed: set[Incarnation] = set()
        """Those whose task ran for too long; they are started again when they are gone."""

    @property
    def is_alive(self) -> bool:
        """Whether there is a Supervisor that receives orders."""
        return self._supervisor.is_alive()

    def is_excused(self, worker: Incarnation) -> bool:
        """Whether a task caused the end of this worker."""
        return worker in self._excused

    def renew(self, worker: Incarnation) -> None:
        """Replace a process, gracefully."""
        self._tell(RestartWorker(worker[0]))

    def kill(self, worker: Incarnation) -> None:
        """Replace a process that does not come back from its task."""
        self._killed.add(worker)
        self._tell(StopWorkers((worker[0],), urgency=Urgency.KILL))

    def note_end(self, worker: Incarnation) -> None:
        """A process is gone."""
        if worker in self._killed:
            self._killed.remove(worker)
            self._tell(StartWorkers((worker[0],)))

    def restart_without_penalty(self, worker: Incarnation) -> None:
        """A task caused the death, so the worker restarts at once with its full restart budget."""
        component_id = worker[0]
        self._excused = {each for each in self._excused if each[0] != component_id}
        self._excused.add(worker)
        # The first ends a waiting delay, the second clears the counters, the third starts a worker
        # that was given up. Each does nothing where it is not needed.
        self._tell(StartWorkers((component_id,)))
        self._tell(ResetWorker(component_id))
        self._tell(StartWorkers((component_id,)))

    def _tell(self, command: StartWorkers | StopWorkers | ResetWorker | RestartWorker) -> None:
        tell(self._supervisor, command)
