"""The Supervisor: what becomes of the workers.

Owns the specs, the restart state and the generation of each worker, the one pending restart
per worker, and whether the system is paused or stopping. Hears `StatusChanged` from the
HealthMonitor, the news of processes from the proxies, `BatchKept` from the Recorder, its own
timers, and the commands of hosts. What it makes of them is decided in `supervision` and
carried out by its `Crew`. If it raises, it keeps what was decided and asks what really runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from . import supervision
from .crew import Colleagues, Crew
from .internal_messages import (
    BackoffElapsed,
    BatchKept,
    Declare,
    HealthSustained,
    JobChanged,
    Keep,
    MonitorReplaced,
    ProcessGone,
    ProcessReported,
    ProcessStarted,
    RegistrationRefused,
    SaveOverdue,
    SupervisorMessage,
)
from .lifecycle import Urgency
from .messages import (
    AddWorker,
    Done,
    PauseWorkers,
    Refused,
    RemoveWorker,
    ReportStatus,
    ResetWorker,
    RestartWorker,
    ResumeWorkers,
    Shutdown,
    StartWorkers,
    StatusChanged,
    StatusReport,
    StopWorkers,
    StoreDegraded,
    StoreRecovered,
    WorkerUnkillable,
)
from .pauses import Pauses
from .ports import Processes, Receiver, Runtime
from .records import Remembered, RememberedWorker
from .runtime import ResilientActor, tell
from .spec import WorkerSpec
from .status import worker_status
from .worker_state import Failed, Step, Worker, World

Ids = tuple[str, ...] | None
"""Some workers, or all of them."""


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
        self._recorder = recorder
        colleagues = Colleagues(
            supervisor=self.actor_ref,
            monitor=monitor,
            recorder=recorder,
            broker=broker,
            processes=processes,
        )
        self._crew = Crew(runtime, colleagues, max_concurrent_starts)
        self._remembered = Remembered()
        self._pauses = Pauses()
        self._started = self._stopping = False
        self._degraded: StoreDegraded | None = None

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
                step(id_, lambda w: supervision.process_gone(w, generation, exit_, forced, self._world(w)))
                # One that was stopped while it started never tells how it is.
                self._crew.start_is_over(id_, generation)
            case BatchKept(deaths=deaths):
                self._kept(deaths)
            case ProcessStarted(component_id=id_, generation=generation, pid=pid):
                step(id_, lambda w: supervision.process_started(w, generation, pid, self._world(w)))
            case BackoffElapsed(component_id=id_):
                step(id_, lambda w: supervision.backoff_elapsed(w, message, self._world(w)))
            case HealthSustained(component_id=id_, generation=generation):
                step(id_, lambda w: supervision.sustained(w, generation, self._world(w)))
            case SaveOverdue():
                self._go_on_from_memory()
            case JobChanged(component_id=id_, generation=generation, job=job):
                step(id_, lambda w: supervision.job_changed(w, generation, job))
            case ProcessReported():
                self._process_reported(message)
            case WorkerUnkillable(component_id=id_):
                self._crew.stops.unkillable(id_)
                self._crew.answer_stops()
            case RegistrationRefused(component_id=id_, generation=generation):
                step(id_, lambda w: supervision.refused(w, generation))
            case MonitorReplaced():
                self._crew.register_again()
            case StoreDegraded():
                self._degraded = message
            case StoreRecovered():
                self._degraded = None
            case Declare(specs=specs, remembered=remembered):
                self._declare(specs, remembered)
            case StartWorkers(ids=ids, reply_to=reply_to):
                self._start(ids, reply_to)
            case StopWorkers(ids=ids, reply_to=reply_to, urgency=urgency):
                self._halt(ids, reply_to, urgency)
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
                tell(reply_to, self._report())
            case Shutdown(reply_to=reply_to, urgency=urgency):
                self._stopping = True
                self._halt(None, reply_to, urgency)
            case unknown:
                self.unexpected(unknown)

    # ── news ─────────────────────────────────────────────────────────────────────────────

    def _declare(self, specs: Iterable[WorkerSpec], remembered: Remembered) -> None:
        self._remembered = remembered
        self._pauses = Pauses.from_meta(remembered.meta)
        for spec in specs:
            self._adopt(spec)

    def _adopt(self, spec: WorkerSpec) -> None:
        known = self._remembered.workers.get(spec.id, RememberedWorker())
        self._crew.adopt(spec, known, self._world(None))

    def _status_changed(self, changed: StatusChanged) -> None:
        id_, generation = changed.component_id, changed.generation
        death = changed.death
        if death is not None:
            # The delay runs from the death, whenever we come to hear of it.
            self._crew.step(id_, lambda w: supervision.died(w, death, self._world(w, changed.at)))
        else:
            ago_ms = round((self._runtime.clock.monotonic() - changed.at) * 1000)
            self._crew.step(id_, lambda w: supervision.health_changed(w, generation, changed.new, ago_ms))
        self._crew.start_is_over(id_, generation)

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
            worker = self._crew.get(component_id)
            if worker is not None:
                self._crew.carry_out(supervision.kept(worker, generation, self._world(worker)))

    def _go_on_from_memory(self) -> None:
        for component_id, generation in self._crew.overdue_saves():
            worker = self._crew.get(component_id)
            if worker is not None:
                self._crew.carry_out(supervision.save_overdue(worker, generation, self._world(worker)))

    # ── what hosts want ──────────────────────────────────────────────────────────────────

    def _start(self, ids: Ids, reply_to: Receiver | None) -> None:
        failed = next((why for id_ in ids or () if (why := self._failure(id_)) is not None), None)
        if failed is not None:
            tell(reply_to, Refused(f"{failed}; reset it first"))
            return
        self._started = self._started or ids is None
        self._command(ids, reply_to, supervision.start)

    def _failure(self, component_id: str) -> str | None:
        worker = self._crew.get(component_id)
        if worker is None or not isinstance(worker.phase, Failed):
            return None
        return f"{component_id} is failed ({worker.phase.reason})"

    def _command(self, ids: Ids, reply_to: Receiver | None, change: Callable[[Worker, World], Step]) -> None:
        refusal = self._unknown(ids) or self._too_late()
        if refusal is None:
            for id_ in self._staying(ids):
                self._crew.step(id_, lambda w: change(w, self._world(w)))
        tell(reply_to, refusal or Done())

    def _halt(self, ids: Ids, reply_to: Receiver | None, urgency: Urgency) -> None:
        refusal = self._unknown(ids)
        if refusal is not None:
            tell(reply_to, refusal)
            return
        self._bring_to_rest(self._chosen(ids), reply_to, urgency)

    def _bring_to_rest(self, chosen: tuple[str, ...], reply_to: Receiver | None, urgency: Urgency) -> None:
        if reply_to is not None:
            self._crew.stops.watch(chosen, reply_to)
        for id_ in chosen:
            self._crew.step(id_, lambda w: supervision.stop(w, urgency))
        self._crew.answer_stops()

    def _pause(self, ids: Ids, reply_to: Receiver | None) -> None:
        refusal = self._unknown(ids)
        if refusal is None:
            self._set_pauses(ids, paused=True)
            for id_ in self._staying(ids):
                self._crew.step(id_, supervision.pause)
        tell(reply_to, refusal or Done())

    def _resume(self, ids: Ids, reply_to: Receiver | None) -> None:
        refusal = self._unknown(ids) or self._too_late()
        if refusal is None:
            self._set_pauses(ids, paused=False)
            for id_ in self._staying(ids):
                if not self._pauses.holds(id_):
                    self._crew.step(id_, lambda w: supervision.resume(w, self._world(w)))
        tell(reply_to, refusal or Done())

    def _set_pauses(self, ids: Ids, *, paused: bool) -> None:
        self._pauses, records = self._pauses.changed(ids, paused=paused)
        for record in records:
            tell(self._recorder, Keep(record))

    def _add(self, spec: WorkerSpec, reply_to: Receiver | None) -> None:
        refusal = self._too_late()
        if refusal is None and spec.id in self._crew:
            refusal = Refused(f"a worker is called {spec.id!r} already")
        if refusal is None:
            self._adopt(spec)
            if self._started:
                self._crew.step(spec.id, lambda w: supervision.start(w, self._world(w)))
        tell(reply_to, refusal or Done())

    def _remove(self, component_id: str, reply_to: Receiver | None) -> None:
        refusal = self._unknown((component_id,))
        if refusal is not None:
            tell(reply_to, refusal)
            return
        self._crew.dismiss(component_id)
        self._bring_to_rest((component_id,), reply_to, Urgency.GRACEFUL)

    def _report(self) -> StatusReport:
        now_ms = round(self._runtime.clock.monotonic() * 1000)
        return StatusReport(
            tuple(worker_status(w, now_ms, paused=self._pauses.holds(w.id)) for w in self._crew),
            paused=self._pauses.everything,
            unsaved=0 if self._degraded is None else self._degraded.unsaved,
            degraded=None if self._degraded is None else self._degraded.reason,
        )

    # ── small things ─────────────────────────────────────────────────────────────────────

    def _unknown(self, ids: Ids) -> Refused | None:
        unknown = next(
            (id_ for id_ in ids or () if id_ not in self._crew or self._crew.is_leaving(id_)), None
        )
        return None if unknown is None else Refused(f"no worker is called {unknown!r}", unknown)

    def _too_late(self) -> Refused | None:
        return Refused("the system is stopping") if self._stopping else None

    def _chosen(self, ids: Ids) -> tuple[str, ...]:
        return tuple(worker.id for worker in self._crew) if ids is None else ids

    def _staying(self, ids: Ids) -> tuple[str, ...]:
        return tuple(id_ for id_ in self._chosen(ids) if not self._crew.is_leaving(id_))

    def _world(self, worker: Worker | None, at: float | None = None) -> World:
        clock = self._runtime.clock
        return World(
            now_ms=round((clock.monotonic() if at is None else at) * 1000),
            wall_ms=clock.wall_ms(),
            stopping=self._stopping,
            paused=worker is not None and self._pauses.holds(worker.id),
            chance=self._runtime.chance(),
        )
