"""The workers under supervision, and how effects on them are carried out.

`supervision` decides about one worker, and this module carries it out: it notifies the proxy, the
monitor and the persistence actor, and sets timers.
Belongs to the Supervisor and runs in it.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import pykka
from loguru import logger
from msgspec.structs import replace

from .. import supervision
from ..facts.jobs import LAST_LINES
from ..facts.records import RememberedWorker
from ..messages.internal.to_broker import WorkerKnown
from ..messages.internal.to_monitor import (
    BreakerTurned,
    ExpectLimitKill,
    MarkFailed,
    SetPaused,
    Unregister,
)
from ..messages.internal.to_persistence import Persist
from ..messages.internal.to_proxy import (
    PauseProcess,
    ProcessFound,
    ReportProcess,
    StartProcess,
    StopProcess,
    UseSpec,
)
from ..messages.internal.to_supervisor import RunsDue, WorkersDeclared
from ..ports import Receiver, Runtime
from ..runtime.pykka_internals import end_actor
from ..runtime.resilient_actor import tell
from ..spec.policies.stop_policy import Urgency
from ..spec.worker_spec import WorkerSpec
from ..supervision import group_rules as groups
from ..supervision import on_schedule
from ..supervision.handed_over_worker import HandedOverWorker, taken_over
from ..supervision.stop_order import StopOrder
from ..supervision.worker import (
    Announce,
    AwaitSave,
    CancelTimers,
    CompareHealth,
    Effect,
    Failed,
    Halt,
    Idle,
    KeepRecord,
    Launch,
    LookAtClock,
    ReleaseJobs,
    ReleaseWork,
    ReportFailed,
    ReportStop,
    Schedule,
    SetCause,
    SetIdle,
    ShowScheduled,
    StopMonitoring,
    Stopping,
    StopReason,
    SupervisedWorker,
    Up,
    WorkerStep,
    World,
)
from ..views.worker_status import mirrored_at_rest, shown
from ..worker_proxy import KnownProcess, WorkerProxy
from .links import Links
from .pending.due_starts import DueStarts
from .pending.start_gate import StartGate
from .pending.stop_waits import StopWatch
from .pending.worker_timers import WorkerTimers
from .worker_states import WorkerStates


class Workers:
    """All workers of one Supervisor."""

    def __init__(self, runtime: Runtime, links: Links, max_concurrent_starts: int | None) -> None:
        self.stops = StopWatch()
        self.timers = WorkerTimers(runtime, links.supervisor)
        self.specs_to_come: Callable[[], tuple[WorkerSpec, ...]] = tuple
        """The specs that rollouts may give to workers later; the rollouts set it."""
        self.shutting_down = False
        """All workers end because the supervisor does."""
        self._runtime = runtime
        self._to = links
        self._table = WorkerStates()
        self._proxies: dict[str, pykka.ActorRef[WorkerProxy]] = {}
        self.stop_order = self._to_stop = StopOrder()
        """The stops that are decided and wait for others."""
        self._is_stopping_some = False
        gate = StartGate(max_concurrent_starts)
        self.due = self._due = DueStarts(self._table, self._to_stop, gate, self._launch)
        """The starts that wait."""

    def __contains__(self, component_id: str) -> bool:
        return component_id in self._table

    def __iter__(self) -> Iterator[SupervisedWorker]:
        return iter(tuple(self._table.values()))

    def get(self, component_id: str) -> SupervisedWorker | None:
        """The worker with this id."""
        return self._table.get(component_id)

    def adopt(
        self, spec: WorkerSpec, known: RememberedWorker, world: World, *, arrives: bool = False
    ) -> None:
        """Take a worker in as it is known; one that was removed here is as it was, unless it arrives."""
        self._start_proxy(spec)
        former = self._table.take_removed(spec.id)
        if former is None or arrives:
            step = supervision.remembered(spec, known, world)
        else:
            step = supervision.readmitted(spec, former)
        tell(self._to.persistence, WorkerKnown(spec.id, shown(step.worker)))
        self.carry_out(step)

    def take_over(self, spec: WorkerSpec, known: HandedOverWorker, process: KnownProcess | None) -> None:
        """Take a worker in with its process, which the former program of this process started."""
        self._start_proxy(spec, process)
        worker = taken_over(spec, known)
        self._table.put(worker)
        tell(self._to.persistence, WorkerKnown(spec.id, shown(worker)))

    def _start_proxy(self, spec: WorkerSpec, process: KnownProcess | None = None) -> None:
        self._proxies[spec.id] = self._to.start_proxy(self._runtime, spec, process)

    def latest_generations(self) -> dict[str, int]:
        """The latest number of every worker, also of those that were removed."""
        return self._table.latest_generations()

    def arrange(self, order: Iterable[str]) -> None:
        """Keep the workers in this order; those that are being removed come last."""
        self._table.arrange(order)

    def declare(self) -> None:
        """Report which workers are supervised, without those that are being removed."""
        staying = tuple(worker.spec for worker in self if not self._table.is_leaving(worker.id))
        tell(self._to.declared, WorkersDeclared(staying, self.specs_to_come()))

    def dismiss(self, component_id: str) -> None:
        """Forget this worker once it has come to rest."""
        self._table.dismiss(component_id)

    def is_leaving(self, component_id: str) -> bool:
        """Whether this worker is being removed."""
        return self._table.is_leaving(component_id)

    def tell_proxy(self, component_id: str, message: object) -> None:
        """Tell a worker's proxy something."""
        tell(self._proxies.get(component_id), message)

    def ask_proxies(self, message: object) -> None:
        """Tell every proxy something."""
        for id_ in self._table:
            self.tell_proxy(id_, message)

    def ask_what_runs(self) -> None:
        """Forget the timers, and have every worker compared with what its proxy says that runs."""
        self.timers.forget_all()
        for id_ in self._table:
            self.tell_proxy(id_, ReportProcess())

    def kill_all(self) -> bool:
        """Kill what still runs: no actor will be left to see it end; whether anything ran."""
        running = [(worker.id, worker.lingering) for worker in self if worker.lingering is not None]
        for id_, generation in running:
            self._to.processes.signal(id_, generation, signal.SIGKILL)
        return bool(running)

    def register_again(self) -> None:
        """The monitor may have missed something: repeat what it has to know."""
        for worker in self:
            match worker.phase:
                case Up():
                    self.tell_proxy(worker.id, ReportProcess())
                case Failed():
                    tell(self._to.monitor, MarkFailed(worker.id))
                case Stopping():
                    tell(self._to.monitor, Unregister(worker.id))
                case _:
                    pass

    def members_of(self, *names: str) -> tuple[SupervisedWorker, ...]:
        """The workers of these groups."""
        return self._table.members_of(*names)

    # ── one step of one worker ───────────────────────────────────────────────────────────

    def step(self, component_id: str, change: Callable[[SupervisedWorker], WorkerStep]) -> None:
        """Change one worker, and do what follows from it."""
        worker = self._table.get(component_id)
        if worker is None:
            logger.debug("supervisor: a message about the unknown worker {!r} was ignored", component_id)
            return
        self.carry_out(change(worker))

    def carry_out(self, step: WorkerStep) -> None:
        """Put the new state in place, then do what it asks for.

        In that order: an effect that raises leaves a worker whose wishes can be reconciled
        with what runs. It does not keep the others from being carried out.
        """
        if step.worker.timetable is not None:
            step = self._with_end_of_run(step)
        worker = step.worker
        self._table.put(worker)
        if step.effects:
            self._to.keep_and_announce(step.effects)
            self._perform_all(worker, step.effects)
        if self._to_stop:
            self.continue_stopping()  # a worker that starts again does not hold up the stop of others
        if worker.spec.membership:
            self.start_ready()  # others of its group may wait for what it just did

    def _with_end_of_run(self, step: WorkerStep) -> WorkerStep:
        before = self.get(step.worker.id) or step.worker
        now = self._runtime.clock.wall_ms()
        step = on_schedule.settled(before, step, now, shutting_down=self.shutting_down)
        if on_schedule.rests(step.worker) and not on_schedule.rests(before):
            effects = (*step.effects, ShowScheduled())
            return WorkerStep(step.worker, effects)
        return step

    def _perform_all(self, worker: SupervisedWorker, effects: tuple[Effect, ...]) -> None:
        for index, effect in enumerate(effects, 1):
            try:
                self._perform(worker, effect)
            except BaseException:
                self._perform_all(worker, effects[index:])
                raise

    def _perform(self, worker: SupervisedWorker, effect: Effect) -> None:
        id_ = worker.spec.id
        match effect:
            case Launch(generation=generation):
                self._due.add(id_, generation)
            case Halt(generation=generation, urgency=urgency, hung=hung):
                self.tell_proxy(id_, StopProcess(generation, urgency, hung))
            case Schedule(delay_ms=delay_ms, message=message):
                self.timers.schedule(id_, delay_ms, message)
            case AwaitSave(generation=generation, delay_ms=delay_ms):
                self.timers.await_save(id_, generation, delay_ms)
            case CancelTimers():
                self.timers.cancel(id_)
            case KeepRecord() | Announce():
                pass  # handed over before anything else
            case ReleaseWork(order=order):
                tell(self._to.releases, order)
            case ReportFailed():
                tell(self._to.monitor, MarkFailed(id_))
            case StopMonitoring():
                tell(self._to.monitor, Unregister(id_))
            case SetCause(generation=generation, detail=detail, timeout=timeout):
                tell(self._to.monitor, ExpectLimitKill(id_, generation, detail, timeout))
            case LookAtClock():
                tell(self._to.supervisor, RunsDue())
            case ShowScheduled():
                tell(self._to.persistence, WorkerKnown(id_, shown(worker)))
            case SetIdle(generation=generation, paused=paused):
                tell(self._to.monitor, SetPaused(id_, paused))
                self.tell_proxy(id_, PauseProcess(generation, paused))
            case CompareHealth(found=found):
                self._to.register(worker)
                tell(self._to.monitor, ProcessFound(id_, found))
            case ReleaseJobs(end=end):
                # A process that was ended by us, later than its death, was not asked for its last words.
                last = end.output or self._to.processes.output(id_)[-LAST_LINES:]
                tell(self._to.desk, replace(end, output=last))
            case ReportStop(exit=exit_, forced=forced, relaunched=True):
                self.stops.settled(worker.id, exit_, forced, relaunched=True)
                self.answer_stops()
                self._show_at_rest(worker)
            case ReportStop(exit=exit_, forced=forced):
                self.stops.settled(id_, exit_, forced)
                self._came_to_rest(worker)

    def breaker_turned(self, name: str, *, is_open: bool) -> None:
        """While a breaker is open, the probes of its workers end none of them."""
        tell(self._to.monitor, BreakerTurned(name, is_open))

    # ── starts ───────────────────────────────────────────────────────────────────────────

    def waits_for(self, worker: SupervisedWorker) -> tuple[str, ...]:
        """The workers that a due start waits for, because they are not healthy yet."""
        return self._due.waits_for(worker)

    def start_ready(self) -> None:
        """A worker turned healthy, is done, or changed: start the workers that wait for no other."""
        self._due.start_ready()

    def start_is_over(self, component_id: str, generation: int) -> None:
        """An incarnation is healthy or dead: let the next one in."""
        self._due.is_over(component_id, generation)

    def call_off(self, worker: SupervisedWorker, why: str) -> None:
        """Have a start that still waits for others wait for a breaker instead."""
        if self.waits_for(worker):
            self._due.drop(worker.id)
            self.carry_out(supervision.call_off(worker, why))

    def _launch(self, worker: SupervisedWorker) -> None:
        # Registered first: the monitor must know the worker before its first frame.
        self._to.register(worker)
        self.tell_proxy(worker.spec.id, StartProcess(worker.generation))

    # ── ends ─────────────────────────────────────────────────────────────────────────────

    def stop(
        self, ids: tuple[str, ...], urgency: Urgency, reason: StopReason, reply_to: Receiver | None
    ) -> None:
        """Stop these workers, dependent workers first, and answer when all rest; a kill does not wait."""
        if reply_to is not None:
            self.stops.watch(ids, reply_to)
        change = partial(supervision.stop, urgency=urgency, reason=reason)
        self._to_stop.stop(ids, change, in_order=urgency is not Urgency.KILL)
        self.continue_stopping()
        self.answer_stops()

    def fall(self, ids: Iterable[str], culprit: str, down: str | None) -> None:
        """Stop these because a member of their group died; one that has not started waits on."""
        running = [id_ for id_ in ids if down is not None or id_ not in self._due]
        self._to_stop.fall(running, partial(groups.fall, culprit=culprit, down=down))
        self.continue_stopping()

    def pause(self, ids: Iterable[str]) -> None:
        """Pause these workers, each by its pause mode, dependent workers first."""
        self._to_stop.pause(ids)
        self.continue_stopping()

    def unpause(self, component_id: str) -> None:
        """A pause ends, perhaps before it began: a worker that others need pauses after them."""
        self._to_stop.unpause(component_id)

    def is_to_fall(self, worker: SupervisedWorker) -> bool:
        """Whether it is to stop because another member of its group died."""
        return worker.id in self._to_stop.falling((worker,))

    def is_to_stop(self, component_id: str) -> bool:
        """Whether its stop is decided and waits for others."""
        return component_id in self._to_stop

    def unkillable(self, component_id: str) -> None:
        """A worker's process survived SIGKILL: its end is not waited for."""
        self._to_stop.outlived(component_id)
        self.stops.unkillable(component_id)
        self.continue_stopping()
        self.answer_stops()

    def continue_stopping(self) -> None:
        """Stop the workers that no other needs; a stop may free the next one."""
        if self._is_stopping_some:
            return  # the loop that stops this one continues by itself
        self._is_stopping_some = True
        try:
            while ready := self._to_stop.ready(self._table):
                for id_ in ready:
                    self.step(id_, self._to_stop.take(id_))
        finally:
            self._is_stopping_some = False

    def respec(self, spec: WorkerSpec) -> None:
        """From now on the worker is this one; what runs continues as it is."""
        self._table.put(replace(self._table[spec.id], spec=spec))
        self.tell_proxy(spec.id, UseSpec(spec))

    def _came_to_rest(self, worker: SupervisedWorker) -> None:
        self._to_stop.at_rest(worker.id)
        if self._table.is_leaving(worker.id):
            self._table.remove(worker)
            end_actor(self._proxies.pop(worker.id))
            self._to.forget(worker.id)
            self.declare()
            self.start_ready()  # starts do not wait for a removed worker
        else:
            self._show_at_rest(worker)
        self.continue_stopping()
        self.answer_stops()

    def _show_at_rest(self, worker: SupervisedWorker) -> None:
        """No monitor watches it now, so views must not keep showing its last health."""
        if isinstance(worker.phase, Idle) and worker.status is None and worker.generation:
            tell(self._to.persistence, Persist((mirrored_at_rest(worker),)))

    def answer_stops(self) -> None:
        """Answer the callers whose wait is over."""
        for reply_to, answer in self.stops.finished():
            tell(reply_to, answer)
