"""The Supervisor: what becomes of the workers.

Owns the specs, the restart state and the generation of each worker, the one pending restart per worker, and
whether the system is paused or stopping. Receives `StatusChanged` from the HealthMonitor, reports about
processes from the proxies, `BatchCommitted` from the PersistenceActor, its own timers, and the commands of
hosts. `supervision` decides, its `Workers` carries out, and its `Operations` take the commands. If it
raises, it keeps what was decided and asks the proxies what runs.
"""

from __future__ import annotations

from collections.abc import Iterable

from loguru import logger
from msgspec.structs import replace

from .. import supervision
from ..deaths.death import Death
from ..facts.health_status import Status
from ..facts.records import Remembered
from ..messages import (
    HostCommand,
    Refused,
    StatusChanged,
    StoodDown,
    StoreDegraded,
    StoreRecovered,
    WorkerUnkillable,
)
from ..messages.argument_checks import wrong_argument
from ..messages.internal.hand_over import GoOn, ReportMemory, WentOn
from ..messages.internal.to_prober import BreakerDue, ProbeAnswered
from ..messages.internal.to_proxy import ProcessStarted, SpawnFailed
from ..messages.internal.to_supervisor import (
    BackoffElapsed,
    BatchCommitted,
    Declare,
    HealthSustained,
    JobChanged,
    JobOverdue,
    LimitExceeded,
    MonitorReplaced,
    OwnNews,
    PauseElapsed,
    ProcessGone,
    ProcessReported,
    RecycleDue,
    RegistrationRefused,
    RolloutDue,
    RunOvertime,
    RunsDue,
    SaveOverdue,
    StallCheckDue,
    SupervisorMessage,
    WorkerNews,
)
from ..ports import Processes, Receiver, Runtime
from ..rules import circuit_breaker
from ..rules.restarts import with_success_codes
from ..runtime.resilient_actor import ResilientActor, tell
from ..spec.worker_spec import WorkerSpec
from ..supervision.group_rules import NO_RULING
from ..supervision.worker import Announce, SupervisedWorker, WorkerStep, World
from .breakers import Breakers
from .groups import Groups
from .handed_over_actors import HandedOverActors
from .links import Links
from .operations import Operations
from .orders.declarations import Declarations
from .orders.pause_orders import PauseOrders
from .orders.standing_orders import StandingOrders
from .pending.pause_ends import PauseEnds
from .pending.room_waits import RoomWaits
from .rollouts import Rollouts
from .schedules import Schedules
from .stall_checks import StallChecks
from .status_reports import StatusReports
from .succession import go_on, known_fleet, obstacle_of
from .upkeep import Upkeep
from .workers import Workers

START_ENDS_WITH = frozenset({Status.HEALTHY, Status.DEAD, Status.FAILED})
"""A worker that asks for time to recover is still starting: it keeps its place among those that start."""


class Supervisor(ResilientActor):
    """Restarts crashed workers, or gives the reason why it does not."""

    ends_when_stopped = True
    """A host that stops all actors of its process at its end wants the workers to end, too."""

    def __init__(
        self,
        *,
        runtime: Runtime,
        processes: Processes,
        monitor: Receiver,
        persistence: Receiver,
        desk: Receiver,
        max_concurrent_starts: int | None = None,
        releases: Receiver | None = None,
        prober: Receiver | None = None,
        declared: Receiver | None = None,
        left: HandedOverActors | None = None,
    ) -> None:
        super().__init__(persistence=persistence)
        self._runtime = runtime
        self._left = left
        me = self.actor_ref
        links = self._links = Links(me, monitor, persistence, desk, processes, releases, declared)
        orders = self._orders = StandingOrders(runtime)
        pause_ends = PauseEnds(runtime, me)
        workers = self._workers = Workers(runtime, links, max_concurrent_starts)
        breakers = self._breakers = Breakers(runtime, workers, orders, me, persistence, prober)
        groups = self._groups = Groups(runtime, workers, orders, breakers, persistence)
        schedules = self._schedules = Schedules(runtime, workers, orders, breakers, links)
        self._room_waits = RoomWaits(persistence)
        self._stalls = StallChecks(runtime, workers, processes, supervisor=me, persistence=persistence)
        self._upkeep = Upkeep(
            runtime, workers, breakers=breakers, supervisor=me, processes=processes, persistence=persistence
        )
        self._reports = StatusReports(
            runtime.clock, workers, orders, breakers, pause_ends, groups, monitor=monitor
        )
        self._pauses = PauseOrders(workers, orders, breakers, pause_ends, runtime.clock, persistence)
        self._declarations = Declarations(
            workers, orders, breakers, groups, schedules, self._pauses, persistence
        )
        rollouts = self._rollouts = Rollouts(
            runtime, workers, breakers, self._declarations, supervisor=me, persistence=persistence
        )
        rollouts.specs_changed = self._specs_changed
        workers.specs_to_come = lambda: rollouts.specs_to_come
        self._declarations.rollouts = self._upkeep.rollouts = self._reports.rollouts = rollouts
        self._operations = Operations(
            workers,
            orders,
            breakers,
            self._upkeep,
            groups=groups,
            schedules=schedules,
            reports=self._reports,
            pauses=self._pauses,
            declarations=self._declarations,
            rollouts=rollouts,
            persistence=persistence,
        )

    def _specs_changed(self) -> None:
        self._upkeep.specs_changed()
        self._breakers.specs_changed()
        self._schedules.specs_changed()

    def on_stop(self) -> None:
        """Leave no process behind: `ActorRegistry.stop_all()` of a host stops us without the System."""
        if self._workers.kill_all():
            logger.error(
                "supervisor: it was stopped from outside, not by `System.stop`; its workers are killed"
            )

    def recover(self) -> None:
        """Keep what was decided, which a handler changes as a whole or not at all; ask what runs."""
        self._workers.ask_what_runs()
        self._schedules.recover()

    def handle(self, message: SupervisorMessage) -> None:
        """Take one message: about a worker, about the system, or a command."""
        if isinstance(message, WorkerNews):
            self._worker_news(message)
        elif isinstance(message, OwnNews):
            self._own_news(message)
        elif isinstance(message, HostCommand):
            wrong = wrong_argument(message)
            if wrong is None:
                self._operations.handle(message)
                self._stalls.command_came()
            else:
                tell(message.reply_to, Refused(wrong))
        else:
            self.unexpected(message)

    def _worker_news(self, message: WorkerNews) -> None:
        step = self._workers.step
        match message:
            case StatusChanged():
                self._status_changed(message)
            case ProcessGone():
                self._process_gone(message)
            case BatchCommitted(deaths=deaths):
                self._deaths_persisted(deaths)
            case ProcessStarted(component_id=id_, generation=generation, pid=pid):
                step(id_, lambda w: supervision.process_started(w, generation, pid, self._world(w)))
                self._upkeep.process_started(id_)
                self._room_waits.over(id_)
            case SpawnFailed(component_id=id_, generation=generation, error=error):
                step(id_, lambda w: supervision.start_delayed(w, generation, error))
                self._room_waits.failed(id_, error)
            case BackoffElapsed(component_id=id_):
                step(id_, lambda w: supervision.backoff_elapsed(w, message, self._world(w)))
            case HealthSustained(component_id=id_, generation=generation):
                step(id_, lambda w: supervision.sustained(w, generation, self._world(w)))
            case JobChanged(component_id=id_, generation=generation, job=job):
                step(id_, lambda w: supervision.job_changed(w, generation, job))
                self._upkeep.job_changed(id_, generation, job)
            case RunOvertime():
                self._schedules.overtime(message)
            case LimitExceeded():
                self._upkeep.limit_exceeded(message)
            case RecycleDue():
                self._upkeep.recycle(message)
            case JobOverdue():
                self._upkeep.end_for_job(message)
            case ProcessReported():
                self._process_reported(message)
            case WorkerUnkillable(component_id=id_):
                self._workers.unkillable(id_)
            case RegistrationRefused(component_id=id_, generation=generation):
                step(id_, lambda w: supervision.refused(w, generation))

    def _own_news(self, message: OwnNews) -> None:
        match message:
            case SaveOverdue():
                self._continue_without_store()
            case PauseElapsed():
                self._pauses.end_elapsed()
                self._groups.start_restored()
                self._schedules.look()
            case RunsDue():
                self._schedules.look()
            case RolloutDue():
                self._rollouts.look()
                self._upkeep.recycle_due()
            case StallCheckDue(at=at):
                self._stalls.check(at)
            case MonitorReplaced():
                self._workers.register_again()
            case StoreDegraded():
                self._reports.degraded = message
            case StoreRecovered():
                self._reports.store_recovered()
            case StoodDown():
                self._operations.stand_down()
            case BreakerDue(name=name):
                self._breakers.wait_elapsed(name)
                self._upkeep.recycle_due()
            case ProbeAnswered(name=name, wrong=wrong):
                self._breakers.probed(name, wrong)
            case Declare(specs=specs, remembered=remembered):
                self._take_in(specs, remembered)
            case ReportMemory():
                self._report_memory(message)
            case GoOn(reply_to=reply_to):
                self._go_on(reply_to)

    def _take_in(self, specs: tuple[WorkerSpec, ...], remembered: Remembered) -> None:
        self._declarations.restore(specs, remembered, self._left)

    def _go_on(self, reply_to: Receiver) -> None:
        """Go on where the former program of this process stopped; from now on it cannot return."""
        left, self._left = self._left, None
        if left is not None:
            go_on(self._workers, self._links, left.fleet, self._breakers.world)
            self._declarations.go_on(left.fleet)
            for worker in self._workers:
                self._upkeep.process_started(worker.id, left.fleet.counted.get(worker.id))
        tell(reply_to, WentOn(left is not None and left.fleet.stopping))

    def _report_memory(self, request: ReportMemory) -> None:
        """Send what only the Supervisor knows; the proxies send theirs."""
        obstacle = None if request.final else obstacle_of(self._workers, self._orders, self._rollouts)
        self._rollouts.are_held = obstacle is None and (request.holds or request.final)
        if obstacle is not None:
            tell(request.reply_to, Refused(obstacle))
        else:
            known = known_fleet(self._workers, self._orders, self._breakers, self._upkeep)
            tell(request.reply_to, known)
            self._workers.ask_proxies(ReportMemory(request.reply_to))
        if not self._rollouts.are_held:
            self._upkeep.recycle_due()  # the upgrade that held it was called off

    def _process_gone(self, gone: ProcessGone) -> None:
        id_, generation = gone.component_id, gone.generation
        self._room_waits.over(id_)
        self._workers.step(
            id_,
            lambda w: supervision.process_gone(
                w, generation, gone.exit, gone.forced, self._world(w), gone.remains
            ),
        )
        # A worker that was stopped while it started never reports its health.
        self._workers.start_is_over(id_, generation)
        self._groups.start_restored()
        self._upkeep.process_gone(id_, generation)
        self._rollouts.look()
        self._upkeep.recycle_due()
        self._breakers.process_ended(id_)

    def _status_changed(self, changed: StatusChanged) -> None:
        id_, generation = changed.component_id, changed.generation
        changed = self._judged(changed)
        death = changed.death
        if death is not None:
            self._count_for_breaker(death, changed.at)
            # The delay runs from the death, not from the moment this message arrives.
            self._take_death(changed, death)
            self._breakers.process_ended(id_)
            self._start_after_task(id_)
        else:
            ago_ms = round((self._runtime.clock.monotonic() - changed.at) * 1000)
            self._workers.step(id_, lambda w: supervision.health_changed(w, generation, changed.new, ago_ms))
            self._health_for_breaker(changed)
        if changed.new in START_ENDS_WITH:
            self._workers.start_is_over(id_, generation)
        if changed.new is Status.HEALTHY:
            self._workers.start_ready()
            self._breakers.check_canaries()
        self._rollouts.look()
        # Also after a failure: the others of its group do not wait for a failed worker.
        self._upkeep.recycle_due()

    def _judged(self, changed: StatusChanged) -> StatusChanged:
        """The same, with what the worker's policy says about the exit code of its death."""
        worker = self._workers.get(changed.component_id)
        if changed.death is None or worker is None:
            return changed
        return replace(changed, death=with_success_codes(worker.spec.restart, changed.death))

    def _start_after_task(self, component_id: str) -> None:
        """Start the workers that waited for a task, if it is done."""
        worker = self._workers.get(component_id)
        if worker is not None and worker.spec.is_task and worker.is_done:
            self._workers.start_ready()

    # ── breakers ─────────────────────────────────────────────────────────────────────────

    def _count_for_breaker(self, death: Death, at: float) -> None:
        worker = self._workers.get(death.component_id)
        if worker is not None and supervision.is_up(worker, death.generation):
            self._breakers.died(worker, death, at)

    def _health_for_breaker(self, changed: StatusChanged) -> None:
        worker = self._workers.get(changed.component_id)
        if worker is None or worker.spec.breaker is None:
            return
        if supervision.is_up(worker, changed.generation):
            healthy = changed.new is Status.HEALTHY
            self._breakers.handle(
                worker.spec.breaker, circuit_breaker.HealthChanged(worker.id, healthy), changed.at
            )

    def _take_death(self, changed: StatusChanged, death: Death) -> None:
        worker = self._workers.get(death.component_id)
        if worker is None or not supervision.is_up(worker, death.generation):
            return  # it was removed, or its end is not a death: it was stopped, or is known already
        world = self._world(worker, changed.at)
        if not worker.spec.membership:
            step = supervision.died(worker, death, world)
            self._workers.carry_out(WorkerStep(step.worker, (Announce(changed), *step.effects)))
            ruling = NO_RULING
        else:
            decided = self._groups.judge(worker, death, world)
            step = supervision.died(worker, death, world, decided.decision, decided.effects)
            self._workers.carry_out(WorkerStep(step.worker, (Announce(changed), *step.effects)))
            self._groups.follow(worker, decided)
            ruling = decided.ruling
        ended = self._groups.essential_end(step.worker, death, ruling)
        if ended is not None:
            self._operations.end_all(ended)

    def _process_reported(self, report: ProcessReported) -> None:
        worker = self._workers.get(report.component_id)
        if worker is None or (worker.lingering is not None and report.ordered < worker.lingering):
            return  # its start waits for other workers, or has not reached the proxy yet
        found = report.generation
        self._workers.carry_out(supervision.reconcile(worker, found, self._world(worker)))
        if found is None:
            self._workers.start_is_over(worker.id, worker.generation)

    def _deaths_persisted(self, deaths: Iterable[tuple[str, int]]) -> None:
        for component_id, generation in deaths:
            self._reports.unanswered.discard((component_id, generation))
            worker = self._workers.get(component_id)
            if worker is not None:
                self._workers.carry_out(supervision.kept(worker, generation, self._world(worker)))

    def _continue_without_store(self) -> None:
        for component_id, generation in self._workers.timers.overdue_saves():
            worker = self._workers.get(component_id)
            if worker is not None and supervision.is_unsaved(worker, generation):
                self._reports.unanswered.add((component_id, generation))
                self._workers.carry_out(supervision.save_overdue(worker, generation, self._world(worker)))

    def _world(self, worker: SupervisedWorker, at: float | None = None) -> World:
        return self._breakers.world(worker, at)
