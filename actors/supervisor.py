"""The Supervisor: what becomes of the workers.

Owns the specs, the restart state and the generation of each worker, the one pending restart
per worker, and whether the system is paused or stopping. Hears `StatusChanged` from the
HealthMonitor, the news of processes from the proxies, `BatchKept` from the Recorder, its own
timers, and the commands of hosts. What it makes of them is decided in `supervision`; here it
is carried out. If it raises, it keeps what was decided and asks the process table what is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import pykka
from loguru import logger

from . import supervision
from .lifecycle import Urgency
from .messages import (
    AddWorker,
    BackoffElapsed,
    BatchKept,
    Declare,
    Done,
    HealthSustained,
    JobChanged,
    Keep,
    MarkFailed,
    MonitorReplaced,
    PauseProcess,
    PauseWorkers,
    ProcessFound,
    ProcessGone,
    ProcessStarted,
    Refused,
    Register,
    RegistrationRefused,
    RemoveWorker,
    ReportStatus,
    ResetWorker,
    RestartWorker,
    ResumeWorkers,
    SaveOverdue,
    SetPaused,
    Shutdown,
    StartProcess,
    StartWorkers,
    StatusChanged,
    StatusReport,
    StopProcess,
    StopWorkers,
    StoreDegraded,
    StoreRecovered,
    SupervisorMessage,
    Unregister,
    WorkerStarted,
    WorkerUnkillable,
)
from .ports import Processes, Receiver, Runtime, Timer
from .records import MetaSet, Remembered, RememberedWorker, StateRemoved
from .runtime import ResilientActor, tell
from .spec import WorkerSpec
from .status import worker_status
from .stopping import StopWatch
from .supervision import (
    Announce,
    CancelTimers,
    Effect,
    Forget,
    GiveUp,
    Halt,
    Idling,
    KeepRecord,
    Launch,
    ReportStop,
    Rest,
    Schedule,
    Step,
    Up,
    Worker,
    World,
)
from .throttle import StartGate
from .worker_proxy import WorkerProxy

ENABLED = "worker_enabled"
"""The setting that holds a pause; `worker_enabled:ID` holds that of one worker."""


class Supervisor(ResilientActor):
    """Brings crashed workers back, or says why not."""

    def __init__(
        self,
        *,
        runtime: Runtime,
        processes: Processes,
        monitor: Receiver,
        recorder: Receiver,
        broker: Receiver,
        max_concurrent_starts: int | None = None,
    ) -> None:
        super().__init__(broker=broker)
        self._runtime = runtime
        self._processes = processes
        self._monitor = monitor
        self._recorder = recorder
        self._workers: dict[str, Worker] = {}
        self._proxies: dict[str, pykka.ActorRef[WorkerProxy]] = {}
        self._timers: dict[tuple[str, type], Timer] = {}
        self._gate = StartGate(max_concurrent_starts)
        self._stops = StopWatch()
        self._paused: frozenset[str | None] = frozenset()
        self._started = self._stopping = False
        self._removing: set[str] = set()
        self._remembered = Remembered()
        self._unsaved: StoreDegraded | None = None

    def recover(self) -> None:
        """Keep what was decided, ask for what is: processes, and the timers that hang on them."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._gate.clear()
        for id_ in self._workers:
            self._processes.report(id_, self.actor_ref)

    def handle(self, message: SupervisorMessage) -> None:  # noqa: C901  # one line an arm
        """Take one message."""
        match message:
            case StatusChanged():
                self._status_changed(message)
            case ProcessGone(component_id=id_, generation=generation, exit=exit_, forced=forced):
                self._step(id_, lambda w: supervision.process_gone(w, generation, exit_, forced, self._world(w)))
            case BatchKept(deaths=deaths):
                self._kept(deaths)
            case ProcessStarted(component_id=id_, generation=generation, pid=pid):
                self._process_started(id_, generation, pid)
            case BackoffElapsed(component_id=id_):
                self._step(id_, lambda w: supervision.backoff_elapsed(w, message, self._world(w)))
            case HealthSustained(component_id=id_, generation=generation):
                self._step(id_, lambda w: supervision.sustained(w, generation, self._world(w)))
            case SaveOverdue(component_id=id_, generation=generation):
                self._step(id_, lambda w: supervision.save_overdue(w, generation, self._world(w)))
            case JobChanged(component_id=id_, generation=generation, job=job):
                self._step(id_, lambda w: supervision.job_changed(w, generation, job))
            case StartWorkers(ids=ids, reply_to=reply_to):
                self._command(ids, reply_to, supervision.start)
            case StopWorkers(ids=ids, reply_to=reply_to, urgency=urgency):
                self._stop(ids, reply_to, urgency)
            case RestartWorker(component_id=id_, reply_to=reply_to):
                self._command((id_,), reply_to, supervision.restart)
            case ResetWorker(component_id=id_, reply_to=reply_to):
                self._command((id_,), reply_to, supervision.reset)
            case PauseWorkers(ids=ids, reply_to=reply_to):
                self._pause(ids, reply_to)
            case ResumeWorkers(ids=ids, reply_to=reply_to):
                self._resume(ids, reply_to)
            case AddWorker(spec=spec, reply_to=reply_to):
                self._add(spec, reply_to)
            case RemoveWorker(component_id=id_, reply_to=reply_to):
                self._remove(id_, reply_to)
            case ReportStatus(reply_to=reply_to):
                self._report(reply_to)
            case Shutdown(reply_to=reply_to, urgency=urgency):
                self._stopping = True
                self._stop(None, reply_to, urgency)
            case StoreDegraded():
                self._unsaved = message
            case StoreRecovered():
                self._unsaved = None
            case WorkerUnkillable(component_id=id_):
                self._stops.unkillable(id_)
            case RegistrationRefused(component_id=id_, generation=generation):
                self._tell_proxy(id_, StopProcess(generation, Urgency.KILL))
            case ProcessFound(component_id=id_, generation=found):
                self._step(id_, lambda w: supervision.reconcile(w, found, self._world(w)))
            case MonitorReplaced():
                self._register_again()
            case Declare(specs=specs, remembered=remembered):
                self._declare(specs, remembered)
            case unknown:
                self.unexpected(unknown)

    # ── the life of a worker ─────────────────────────────────────────────────────────────

    def _declare(self, specs: Iterable[WorkerSpec], remembered: Remembered) -> None:
        self._remembered = remembered
        off = {key for key, value in remembered.meta.items() if value.strip().lower() == "false"}
        self._paused = frozenset(
            key.removeprefix(ENABLED).removeprefix(":") or None for key in off if key.startswith(ENABLED)
        )
        for spec in specs:
            self._adopt(spec)

    def _adopt(self, spec: WorkerSpec) -> None:
        self._proxies[spec.id] = self._runtime.start(
            WorkerProxy,
            spec,
            runtime=self._runtime,
            processes=self._processes,
            supervisor=self.actor_ref,
            monitor=self._monitor,
            broker=self.broker,
        )
        known = self._remembered.workers.get(spec.id, RememberedWorker())
        self._carry_out(supervision.remembered(spec, known, self._world(None)))

    def _status_changed(self, changed: StatusChanged) -> None:
        id_, generation = changed.component_id, changed.generation
        death = changed.death
        if death is not None:
            self._step(id_, lambda w: supervision.died(w, death, self._world(w, changed.at)))
        else:
            self._step(id_, lambda w: supervision.health_changed(w, generation, changed.new))
        self._start_is_over(id_, generation)

    def _process_started(self, component_id: str, generation: int, pid: int) -> None:
        self._step(component_id, lambda w: supervision.process_started(w, generation, pid))
        tell(self.broker, WorkerStarted(component_id, generation, pid))

    def _kept(self, deaths: Iterable[tuple[str, int]]) -> None:
        for component_id, generation in deaths:
            worker = self._workers.get(component_id)
            if worker is not None:
                self._carry_out(supervision.kept(worker, generation, self._world(worker)))

    # ── what hosts want ──────────────────────────────────────────────────────────────────

    def _command(
        self,
        ids: tuple[str, ...] | None,
        reply_to: Receiver | None,
        change: Callable[[Worker, World], Step],
    ) -> None:
        refusal = self._refusal(ids, change)
        if refusal is not None:
            tell(reply_to, refusal)
            return
        if ids is None:
            self._started = True
        for id_ in self._chosen(ids):
            self._step(id_, lambda w: change(w, self._world(w)))
        tell(reply_to, Done())

    def _refusal(
        self, ids: tuple[str, ...] | None, change: Callable[[Worker, World], Step] | None = None
    ) -> Refused | None:
        unknown = next((id_ for id_ in ids or () if id_ not in self._workers), None)
        if unknown is not None:
            return Refused(f"no worker is called {unknown!r}", unknown)
        if change is not None and self._stopping:
            return Refused("the system is stopping")
        if change is supervision.start and ids is not None:
            for id_ in ids:
                phase = self._workers[id_].phase
                if isinstance(phase, supervision.Failed):
                    return Refused(f"{id_} is failed ({phase.reason}); reset it first")
        return None

    def _stop(
        self, ids: tuple[str, ...] | None, reply_to: Receiver | None, urgency: Urgency
    ) -> None:
        refusal = self._refusal(ids)
        if refusal is not None:
            tell(reply_to, refusal)
            return
        chosen = self._chosen(ids)
        if reply_to is not None:
            self._stops.watch(chosen, reply_to)
        for id_ in chosen:
            self._step(id_, lambda w: supervision.stop(w, urgency))
        self._answer_stops()

    def _pause(self, ids: tuple[str, ...] | None, reply_to: Receiver | None) -> None:
        refusal = self._refusal(ids)
        if refusal is None:
            self._set_paused(self._paused | set(ids or (None,)))
            for id_ in self._chosen(ids):
                self._step(id_, supervision.pause)
        tell(reply_to, refusal or Done())

    def _resume(self, ids: tuple[str, ...] | None, reply_to: Receiver | None) -> None:
        refusal = self._refusal(ids, supervision.resume)
        if refusal is None:
            self._set_paused(self._paused - set(ids or (None,)))
            for id_ in self._chosen(ids):
                if not self._is_paused(id_):
                    self._step(id_, lambda w: supervision.resume(w, self._world(w)))
        tell(reply_to, refusal or Done())

    def _set_paused(self, paused: frozenset[str | None]) -> None:
        for key in paused ^ self._paused:
            name = ENABLED if key is None else f"{ENABLED}:{key}"
            self._recorder.tell(Keep(MetaSet(name, "false" if key in paused else "true")))
        self._paused = paused

    def _add(self, spec: WorkerSpec, reply_to: Receiver | None) -> None:
        if self._stopping:
            tell(reply_to, Refused("the system is stopping"))
        elif spec.id in self._workers:
            tell(reply_to, Refused(f"a worker is called {spec.id!r} already"))
        else:
            self._adopt(spec)
            if self._started:
                self._step(spec.id, lambda w: supervision.start(w, self._world(w)))
            tell(reply_to, Done())

    def _remove(self, component_id: str, reply_to: Receiver | None) -> None:
        refusal = self._refusal((component_id,))
        if refusal is None:
            self._removing.add(component_id)
        self._stop((component_id,), reply_to, Urgency.GRACEFUL)

    def _report(self, reply_to: Receiver) -> None:
        now_ms = self._now_ms()
        workers = tuple(
            worker_status(worker, now_ms, paused=self._is_paused(id_))
            for id_, worker in self._workers.items()
        )
        degraded = self._unsaved
        report = StatusReport(
            workers,
            paused=None in self._paused,
            unsaved=0 if degraded is None else degraded.unsaved,
            degraded=None if degraded is None else degraded.reason,
        )
        tell(reply_to, report)

    # ── carrying it out ──────────────────────────────────────────────────────────────────

    def _step(self, component_id: str, change: Callable[[Worker], Step]) -> None:
        worker = self._workers.get(component_id)
        if worker is None:
            logger.debug("news of {!r}, which nobody supervises", component_id)
            return
        self._carry_out(change(worker))

    def _carry_out(self, step: Step) -> None:
        # The new state is in place before anything is done about it, so that an effect that
        # raises leaves a worker whose wishes can be reconciled with what runs.
        worker = step.worker
        self._workers[worker.id] = worker
        for effect in step.effects:
            self._perform(worker, effect)

    def _perform(self, worker: Worker, effect: Effect) -> None:
        match effect:
            case Launch(generation=generation):
                if self._gate.admit((worker.id, generation)):
                    self._launch(worker, generation)
            case Halt(generation=generation, urgency=urgency):
                self._tell_proxy(worker.id, StopProcess(generation, urgency))
            case Schedule(delay_ms=delay_ms, message=message):
                self._schedule(worker.id, delay_ms, message)
            case CancelTimers():
                self._cancel_timers(worker.id)
            case KeepRecord(record=record):
                self._recorder.tell(Keep(record))
            case Announce(event=event):
                tell(self.broker, event)
            case GiveUp():
                self._monitor.tell(MarkFailed(worker.id))
            case Forget():
                self._monitor.tell(Unregister(worker.id))
            case Idling(generation=generation, paused=paused):
                self._monitor.tell(SetPaused(worker.id, paused))
                self._tell_proxy(worker.id, PauseProcess(generation, paused))
            case ReportStop(exit=exit_, forced=forced):
                self._stops.settled(worker.id, exit_, forced)
                self._came_to_rest(worker)

    def _launch(self, worker: Worker, generation: int) -> None:
        """Register first: a fast worker's first frame must find its place."""
        spec = worker.spec
        self._monitor.tell(Register(spec.id, generation, spec.health, spec.run.reports_health))
        self._tell_proxy(spec.id, StartProcess(generation))

    def _start_is_over(self, component_id: str, generation: int) -> None:
        ticket = self._gate.release((component_id, generation))
        while ticket is not None:
            worker = self._workers.get(ticket[0])
            if worker is not None and isinstance(worker.phase, Up) and worker.generation == ticket[1]:
                self._launch(worker, ticket[1])
                return
            ticket = self._gate.release(ticket)

    def _came_to_rest(self, worker: Worker) -> None:
        if worker.id in self._removing:
            self._removing.discard(worker.id)
            del self._workers[worker.id]
            self._proxies.pop(worker.id).stop(block=False)
            self._processes.forget(worker.id)
            self._monitor.tell(Unregister(worker.id))
            self._recorder.tell(Keep(StateRemoved(worker.id)))
        self._answer_stops()

    def _answer_stops(self) -> None:
        for reply_to, answer in self._stops.finished():
            tell(reply_to, answer)

    def _schedule(
        self, component_id: str, delay_ms: int, message: BackoffElapsed | HealthSustained | SaveOverdue
    ) -> None:
        key = (component_id, type(message))
        earlier = self._timers.pop(key, None)
        if earlier is not None:
            earlier.cancel()
        self._timers[key] = self._runtime.timers.after(delay_ms / 1000, self.actor_ref, message)

    def _cancel_timers(self, component_id: str) -> None:
        for kind in (BackoffElapsed, HealthSustained, SaveOverdue):
            timer = self._timers.pop((component_id, kind), None)
            if timer is not None:
                timer.cancel()

    def _register_again(self) -> None:
        """The monitor lost its state: give it the living and the failed, and what really runs."""
        for id_, worker in self._workers.items():
            if isinstance(worker.phase, Up):
                spec = worker.spec
                self._monitor.tell(
                    Register(id_, worker.generation, spec.health, spec.run.reports_health)
                )
                self._processes.report(id_, self._monitor)
            elif isinstance(worker.phase, supervision.Failed):
                self._monitor.tell(MarkFailed(id_))

    # ── small things ─────────────────────────────────────────────────────────────────────

    def _tell_proxy(self, component_id: str, message: object) -> None:
        tell(self._proxies.get(component_id), message)

    def _chosen(self, ids: tuple[str, ...] | None) -> tuple[str, ...]:
        return tuple(self._workers) if ids is None else ids

    def _is_paused(self, component_id: str) -> bool:
        return None in self._paused or component_id in self._paused

    def _now_ms(self) -> int:
        return round(self._runtime.clock.monotonic() * 1000)

    def _world(self, worker: Worker | None, at: float | None = None) -> World:
        return World(
            now_ms=self._now_ms() if at is None else round(at * 1000),
            wall_ms=self._runtime.clock.wall_ms(),
            stopping=self._stopping,
            paused=worker is not None and self._is_paused(worker.id),
            chance=self._runtime.chance(),
        )
