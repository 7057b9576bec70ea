"""The Supervisor: what becomes of the workers.

Owns the specs, the restart state and the generation of each worker, the one pending restart
per worker, and whether the system is paused or stopping. Hears `StatusChanged` from the
HealthMonitor, the news of processes from the proxies, `BatchKept` from the PersistenceActor, its own
timers, and the commands of hosts. What it makes of them is decided in `supervision`, carried
out by its `Crew`, and for commands by its `Operations`. If it raises, it keeps what was decided
and asks what really runs.
"""

from __future__ import annotations

from collections.abc import Iterable

from .. import supervision
from ..deaths.death import Death
from ..facts.health_status import Status
from ..messages import (
    AddWorker,
    ChangeWorkers,
    HostCommand,
    RemoveWorker,
    StartWorkers,
    StatusChanged,
    StoodDown,
    StopWorkers,
    StoreDegraded,
    StoreRecovered,
    WorkerUnkillable,
)
from ..messages.internal import (
    BackoffElapsed,
    BatchKept,
    Declare,
    HealthSustained,
    JobChanged,
    LimitExceeded,
    MonitorReplaced,
    OwnNews,
    PauseElapsed,
    ProcessGone,
    ProcessReported,
    ProcessStarted,
    RecycleDue,
    RegistrationRefused,
    SaveOverdue,
    SupervisorMessage,
)
from ..messages.internal.to_prober import BreakerDue, ProbeAnswered
from ..ports import Processes, Receiver, Runtime
from ..rules import circuit_breaker
from ..runtime.resilient_actor import ResilientActor
from ..spec.stop_urgency import Urgency
from ..supervision.worker import Announce, Step, Worker, World
from .breakers import Breakers
from .colleagues import Colleagues
from .crew import Crew
from .operations import Operations
from .upkeep import Upkeep


class Supervisor(ResilientActor):
    """Brings crashed workers back, or says why not."""

    def __init__(
        self,
        *,
        runtime: Runtime,
        processes: Processes,
        monitor: Receiver,
        broker: Receiver,
        desk: Receiver,
        max_concurrent_starts: int | None = None,
        releases: Receiver | None = None,
        prober: Receiver | None = None,
    ) -> None:
        super().__init__(broker=broker)
        self._runtime = runtime
        colleagues = Colleagues(
            supervisor=self.actor_ref,
            monitor=monitor,
            broker=broker,
            processes=processes,
            desk=desk,
            releases=releases,
        )
        self._crew = Crew(runtime, colleagues, max_concurrent_starts)
        self._operations = Operations(runtime, self._crew, self.actor_ref, broker)
        self._breakers = Breakers(
            runtime, self._crew, self.actor_ref, broker, start=self._start_held, prober=prober
        )
        self._upkeep = Upkeep(
            runtime,
            self._crew,
            supervisor=self.actor_ref,
            processes=processes,
            broker=broker,
            may_be_renewed=self._breakers.is_calm,
        )
        self._operations.held = self._breakers.holds
        self._operations.held_in_full = self._breakers.shown
        self._operations.breakers = self._breakers.report

    def on_stop(self) -> None:
        """Leave no process behind, whoever stopped us: `ActorRegistry.stop_all()` asks no System."""
        self._crew.kill_all()

    def recover(self) -> None:
        """Keep what was decided, which a handler cannot change by halves; ask for what is."""
        self._crew.ask_what_runs()

    def handle(self, message: SupervisorMessage) -> None:
        """Take one message."""
        step = self._crew.step
        match message:
            case StatusChanged():
                self._status_changed(message)
            case ProcessGone(component_id=id_, generation=generation, exit=exit_, forced=forced):
                remains = message.remains
                step(
                    id_,
                    lambda w: supervision.process_gone(w, generation, exit_, forced, self._world(w), remains),
                )
                # One that was stopped while it started never tells how it is.
                self._crew.start_is_over(id_, generation)
                self._upkeep.gone(id_, generation)
                self._upkeep.reconsider()
                self._breakers.ended(id_)
            case BatchKept(deaths=deaths):
                self._kept(deaths)
            case ProcessStarted(component_id=id_, generation=generation, pid=pid):
                step(id_, lambda w: supervision.process_started(w, generation, pid, self._world(w)))
                self._upkeep.started(id_)
            case BackoffElapsed(component_id=id_):
                step(id_, lambda w: supervision.backoff_elapsed(w, message, self._world(w)))
            case HealthSustained(component_id=id_, generation=generation):
                step(id_, lambda w: supervision.sustained(w, generation, self._world(w)))
            case JobChanged(component_id=id_, generation=generation, job=job):
                step(id_, lambda w: supervision.job_changed(w, generation, job))
                self._upkeep.job_changed(id_, generation, job)
            case LimitExceeded():
                self._upkeep.limit_exceeded(message)
            case RecycleDue():
                self._upkeep.recycle(message)
            case ProcessReported():
                self._process_reported(message)
            case WorkerUnkillable(component_id=id_):
                self._crew.unkillable(id_)
            case RegistrationRefused(component_id=id_, generation=generation):
                step(id_, lambda w: supervision.refused(w, generation))
            case _:
                self._of_ourselves(message)

    def _of_ourselves(self, message: OwnNews | HostCommand) -> None:
        """Take what our own actors and timers say of themselves; commands are for the operations."""
        match message:
            case SaveOverdue():
                self._go_on_from_memory()
            case PauseElapsed():
                self._operations.end_pauses()
            case MonitorReplaced():
                self._crew.register_again()
            case StoreDegraded():
                self._operations.degraded = message
            case StoreRecovered():
                self._operations.degraded = None
                # In a long outage rows are given up, and nobody answers for those one by one.
                self._operations.unanswered.clear()
            case StoodDown():
                self._operations.stand_down()
                self._operations.handle(StopWorkers(urgency=Urgency.FIRM))
            case BreakerDue(name=name):
                self._breakers.due(name)
                self._upkeep.reconsider()
            case ProbeAnswered(name=name, wrong=wrong):
                self._breakers.probed(name, wrong)
            case Declare(specs=specs, remembered=remembered):
                self._operations.declare(specs, remembered)
                self._breakers.remember(remembered.meta)
            case _:
                self._command(message)

    def _command(self, command: HostCommand) -> None:
        """Carry out what a host wants, and what follows from it for upkeep and breakers."""
        self._operations.handle(command)
        match command:
            case ChangeWorkers():
                self._upkeep.respecified()
                self._breakers.respecified()
            case AddWorker():
                self._breakers.watch()
            case StartWorkers():
                self._upkeep.reconsider()
                self._breakers.mind_canaries()
                self._breakers.watch()
            case RemoveWorker():
                self._upkeep.reconsider()
                self._breakers.respecified()
            case _:
                self._upkeep.reconsider()
                self._breakers.mind_canaries()

    def _status_changed(self, changed: StatusChanged) -> None:
        id_, generation = changed.component_id, changed.generation
        death = changed.death
        if death is not None:
            self._count_for_breaker(death, changed.at)
            # The delay runs from the death, whenever we come to hear of it.
            self._crew.step(id_, lambda w: self._died(w, changed, death))
            self._breakers.ended(id_)
        else:
            ago_ms = round((self._runtime.clock.monotonic() - changed.at) * 1000)
            self._crew.step(id_, lambda w: supervision.health_changed(w, generation, changed.new, ago_ms))
            self._health_for_breaker(changed)
        self._crew.start_is_over(id_, generation)
        if changed.new is Status.HEALTHY:
            self._crew.start_those_who_waited()
            self._breakers.mind_canaries()
        # Also when one is given up: the others of its group do not wait for it any longer.
        self._upkeep.reconsider()

    # ── breakers ─────────────────────────────────────────────────────────────────────────

    def _count_for_breaker(self, death: Death, at: float) -> None:
        worker = self._crew.get(death.component_id)
        if worker is None or worker.spec.breaker is None or not supervision.is_up(worker, death.generation):
            return
        if not self._world(worker).stopping and not death.ended_well:
            self._breakers.take(worker.spec.breaker, circuit_breaker.Died(worker.id), at)

    def _health_for_breaker(self, changed: StatusChanged) -> None:
        worker = self._crew.get(changed.component_id)
        if worker is None or worker.spec.breaker is None:
            return
        if supervision.is_up(worker, changed.generation):
            healthy = changed.new is Status.HEALTHY
            self._breakers.take(worker.spec.breaker, circuit_breaker.Health(worker.id, healthy), changed.at)

    def _start_held(self, component_id: str) -> None:
        worker = self._crew.get(component_id)
        if worker is not None and not self._world(worker).stopping:
            self._crew.step(component_id, lambda w: supervision.start(w, self._world(w)))

    def _died(self, worker: Worker, changed: StatusChanged, death: Death) -> Step:
        step = supervision.died(worker, death, self._world(worker, changed.at))
        # One that was stopped or counted already has no effects, and is told to nobody.
        return Step(step.worker, (Announce(changed), *step.effects)) if step.effects else step

    def _process_reported(self, report: ProcessReported) -> None:
        worker = self._crew.get(report.component_id)
        if worker is None or (worker.lingering is not None and report.told < worker.lingering):
            return  # its start still waits for others, or is on its way to the proxy
        found = report.generation
        self._crew.carry_out(supervision.reconcile(worker, found, self._world(worker)))
        if found is None:
            self._crew.start_is_over(worker.id, worker.generation)

    def _kept(self, deaths: Iterable[tuple[str, int]]) -> None:
        for component_id, generation in deaths:
            self._operations.unanswered.discard((component_id, generation))
            worker = self._crew.get(component_id)
            if worker is not None:
                self._crew.carry_out(supervision.kept(worker, generation, self._world(worker)))

    def _go_on_from_memory(self) -> None:
        for component_id, generation in self._crew.timers.overdue_saves():
            worker = self._crew.get(component_id)
            if worker is not None and supervision.is_unsaved(worker, generation):
                self._operations.unanswered.add((component_id, generation))
                self._crew.carry_out(supervision.save_overdue(worker, generation, self._world(worker)))

    def _world(self, worker: Worker, at: float | None = None) -> World:
        return self._operations.world(worker, at)
