"""The actors that the Supervisor notifies of what becomes of workers, and the process table."""

from __future__ import annotations

import msgspec
import pykka

from ..facts.records import Record, StateRemoved
from ..messages import Event, WorkerRemoved, is_event
from ..messages.internal.to_broker import WorkerForgotten
from ..messages.internal.to_monitor import Register, Unregister
from ..messages.internal.to_persistence import Persist
from ..ports import Processes, Receiver, Runtime
from ..runtime.resilient_actor import tell
from ..spec.worker_spec import WorkerSpec
from ..supervision.worker import Announce, Effect, KeepRecord, SupervisedWorker
from ..worker_proxy import KnownProcess, WorkerProxy


class Links(msgspec.Struct, frozen=True):
    """The actors that are notified of what becomes of workers, and the process table."""

    supervisor: Receiver
    monitor: Receiver
    persistence: Receiver
    desk: Receiver
    processes: Processes
    releases: Receiver | None = None
    declared: Receiver | None = None
    """Gets `WorkersDeclared` before a command that changed the workers is answered."""

    def keep_and_announce(self, effects: tuple[Effect, ...]) -> None:
        """Send all records and events in one message, so that they go into one transaction."""
        items: list[Record | Event] = []
        for effect in effects:
            if isinstance(effect, KeepRecord):
                items.append(effect.record)
            elif isinstance(effect, Announce):
                items.append(effect.event)
        if len(items) == 1 and is_event(items[0]):
            tell(self.persistence, items[0])
        elif items:
            tell(self.persistence, Persist(tuple(items)))

    def start_proxy(
        self, runtime: Runtime, spec: WorkerSpec, process: KnownProcess | None
    ) -> pykka.ActorRef[WorkerProxy]:
        """Start the proxy of a worker, with the process that it has already, if any."""
        return runtime.start(
            WorkerProxy,
            spec,
            runtime=runtime,
            processes=self.processes,
            supervisor=self.supervisor,
            monitor=self.monitor,
            persistence=self.persistence,
            known=process,
        )

    def register(self, worker: SupervisedWorker) -> None:
        """Have the monitor watch the current incarnation of a worker."""
        spec = worker.spec
        register = Register(
            spec.id,
            worker.generation,
            spec.health,
            spec.run.reports_health,
            spec.ready,
            spec.alive,
            None if spec.breaker is None else spec.breaker.name,
            spec.stop.total_s,
        )
        tell(self.monitor, register)

    def forget(self, component_id: str) -> None:
        """A worker was removed, and nothing is left of its process."""
        self.processes.forget(component_id)
        tell(self.monitor, Unregister(component_id))
        # By the way that its deaths took: it must not overtake them.
        tell(self.persistence, Persist((StateRemoved(component_id), WorkerRemoved(component_id))))
        tell(self.persistence, WorkerForgotten(component_id))
