"""Starts that are due and wait: for other workers to be healthy, or for a place among the starts.

Belongs to the Supervisor's `Workers`.
"""

from __future__ import annotations

from collections.abc import Callable

from ...supervision import group_rules as groups
from ...supervision.stop_order import StopOrder
from ...supervision.worker import SupervisedWorker, Up
from ..worker_states import WorkerStates
from .start_gate import StartGate


class DueStarts:
    """Launches each worker when nothing holds its start back."""

    def __init__(
        self,
        table: WorkerStates,
        stops: StopOrder,
        gate: StartGate,
        launch: Callable[[SupervisedWorker], None],
    ) -> None:
        self._table = table
        self._stops = stops
        self._gate = gate
        self._launch = launch
        self._due: dict[str, int] = {}
        """Starts that wait for others to be healthy: the generation by id."""

    def __contains__(self, component_id: str) -> bool:
        return component_id in self._due

    def add(self, component_id: str, generation: int) -> None:
        """Start this incarnation now, or when it waits for no other worker."""
        self._due[component_id] = generation
        self._start_if_ready(component_id)

    @property
    def gate(self) -> StartGate:
        """How many may start at the same time."""
        return self._gate

    def drop(self, component_id: str) -> None:
        """A start will not happen."""
        del self._due[component_id]

    def start_ready(self) -> None:
        """Start the workers that wait for no other."""
        for id_ in tuple(self._due):
            self._start_if_ready(id_)

    def waits_for(self, worker: SupervisedWorker) -> tuple[str, ...]:
        """The workers that a due start waits for, because they are not healthy yet."""
        if not isinstance(worker.phase, Up) or self._due.get(worker.id) != worker.generation:
            return ()
        if not worker.spec.after and not worker.spec.membership:
            return ()
        others = (self._table.get(id_) for id_ in worker.spec.after)
        ahead = tuple(other.id for other in others if other is not None and not other.lets_start(worker.spec))
        return ahead or self._ending_in_group(worker)

    def is_over(self, component_id: str, generation: int) -> None:
        """An incarnation is healthy or dead: let the next one in."""
        ticket = self._gate.release((component_id, generation))
        while ticket is not None:
            worker = self._table.get(ticket[0])
            if worker is not None and isinstance(worker.phase, Up) and worker.generation == ticket[1]:
                self._launch(worker)
                return
            ticket = self._gate.release(ticket)

    def _start_if_ready(self, component_id: str) -> None:
        worker = self._table.get(component_id)
        generation = self._due[component_id]
        if worker is None or not isinstance(worker.phase, Up) or worker.generation != generation:
            del self._due[component_id]  # it was stopped meanwhile
        elif not self.waits_for(worker):
            del self._due[component_id]
            if self._gate.admit((component_id, generation)):
                self._launch(worker)

    def _ending_in_group(self, worker: SupervisedWorker) -> tuple[str, ...]:
        """The members of its groups that must end first, since they start again with it."""
        if not worker.spec.membership:
            return ()
        members = self._table.members_of(*(place.group.name for place in worker.spec.membership))
        return groups.waits_for(worker, members, self._stops.falling(members))
