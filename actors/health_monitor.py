"""The HealthMonitor: the sole authority for every worker's health.

Owns one health state and one deadline per registered incarnation. Receives frames, closed
channels, exits and registrations; sends `StatusChanged` to the Supervisor and the Broker, and
the mirror to the PersistenceActor. It never reads the mirror back. If it raises, it keeps the
states, extends every deadline by the time it was away, and asks for what it may have missed.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from types import MappingProxyType

from loguru import logger
from msgspec.structs import replace

from .deaths.death import Cause, Death, Exit
from .deaths.evidence import Remains
from .facts.frames import Frame
from .facts.generations import GenerationStarted
from .facts.health_status import Status
from .facts.notify_datagram import NotifyDatagram
from .health_mirror import HealthMirror
from .messages import StatusChanged, WorkerStarted
from .messages.internal.hand_over import ReportMemory
from .messages.internal.to_monitor import (
    Attend,
    BreakerTurned,
    ChannelClosed,
    CompleteReport,
    ConditionChecked,
    DeadlineReached,
    ExpectLimitKill,
    FrameReceived,
    LifeProbed,
    MarkFailed,
    MirrorDue,
    MonitorMessage,
    NoticeReceived,
    ProtocolViolated,
    Register,
    SetPaused,
    Unregister,
)
from .messages.internal.to_persistence import Persist
from .messages.internal.to_proxy import ProcessExited, ProcessFound, ProcessStarted, SpawnFailed
from .messages.internal.to_supervisor import JobChanged, MonitorReplaced, RegistrationRefused
from .ports import Processes, Receiver, Runtime
from .rules.worker_health import progress, watchdog
from .rules.worker_health.health import advance, triggers_of
from .rules.worker_health.health_states import (
    Checked,
    Elapsed,
    GivenUp,
    Granted,
    HealthChange,
    Launched,
    Lost,
    MarkedFailed,
    Reported,
    Trigger,
)
from .rules.worker_health.known_health import KnownHealth, known_health, restore
from .rules.worker_health.observed_worker import ObservedWorker, observed, with_heartbeats
from .runtime.deadline_queue import Deadline, DeadlineQueue
from .runtime.resilient_actor import ResilientActor, tell
from .spec.policies.health_policy import HealthPolicy

ABSENCE_S = 1.0
"""A check that runs this late shows that the supervisor was suspended, not that workers were silent."""

MOST_EXTENSIONS = 3
"""How many suspends in a row extend a silent worker's deadline; without a limit a hang would stay hidden."""

_ELAPSED = Elapsed()


class HealthMonitor(ResilientActor):
    """Derives the health of every worker from frames, exits and time."""

    def __init__(
        self,
        *,
        runtime: Runtime,
        processes: Processes,
        persistence: Receiver,
        known: Mapping[str, KnownHealth] = MappingProxyType({}),
        known_at: float = 0.0,
    ) -> None:
        super().__init__(persistence=persistence)
        self._known = dict(known)
        """The health of processes of the former program, until they are registered again."""
        self._known_at = known_at
        self._runtime = runtime
        self._processes = processes
        self._supervisor: Receiver | None = None
        self._workers: dict[str, ObservedWorker] = {}
        self._deadlines = DeadlineQueue(runtime, self.actor_ref, DeadlineReached, self._is_wanted)
        self._mirror = HealthMirror(runtime, self.actor_ref, persistence)
        self._open_breakers: set[str] = set()

    def recover(self) -> None:
        """Keep the states, which a handler replaces as a whole; ask for what was missed."""
        self._deadlines.clear()
        self._mirror.reset()
        # A check that raised may raise again: not at once, or the monitor would do nothing else.
        soon = self._runtime.clock.monotonic() + ABSENCE_S
        for worker in self._workers.values():
            worker.checked_at = None
            self._extend(worker)
            self._watch(worker, soon)
            self._mirror.mark(worker)
        tell(self._supervisor, MonitorReplaced())

    def handle(self, message: MonitorMessage) -> None:
        """Handle one message."""
        match message:
            case FrameReceived(component_id=id_, generation=generation, frame=frame):
                self._frame(id_, generation, frame)
            case DeadlineReached(due=due):
                self._deadline_reached(due)
            case ProcessStarted():
                self._started(message)
            case ProcessExited(component_id=id_, generation=generation, exit=exit_, remains=remains):
                self._exited(id_, generation, exit_, remains)
            case SpawnFailed(component_id=id_, generation=generation, scarce=True):
                self._start_delayed(id_, generation)
            case SpawnFailed(component_id=id_, generation=generation, error=error):
                self._lost(id_, generation, Lost(Cause.SPAWN_FAILED, detail=error))
            case ConditionChecked(component_id=id_, generation=generation):
                if (worker := self._current(id_, generation)) is not None:
                    self._advance(worker, Checked(message.condition, message.is_met, message.words))
            case NoticeReceived(component_id=id_, generation=generation, notice=notice):
                self._noticed(id_, generation, notice)
            case LifeProbed():
                self._probed(message)
            case BreakerTurned(name=name, is_open=is_open):
                (self._open_breakers.add if is_open else self._open_breakers.discard)(name)
            case ChannelClosed(component_id=id_, generation=generation):
                self._lost(id_, generation, Lost(Cause.CHANNEL_CLOSED, detail="its process still ran"))
            case ProtocolViolated(component_id=id_, generation=generation, detail=detail):
                self._lost(id_, generation, Lost(Cause.PROTOCOL, detail=detail))
            case ExpectLimitKill():
                self._limit_exceeded(message)
            case ProcessFound(component_id=id_, generation=generation):
                self._found(id_, generation)
            case Register():
                self._register(message)
            case Unregister(component_id=id_):
                self._workers.pop(id_, None)
                self._mirror.forget(id_)
            case MarkFailed(component_id=id_):
                self._mark_failed(id_)
            case SetPaused(component_id=id_, paused=paused):
                self._set_paused(id_, paused)
            case MirrorDue():
                self._mirror.write(self._workers)
            case CompleteReport(report=report, reply_to=reply_to):
                tell(reply_to, with_heartbeats(report, self._workers, self._runtime.clock.monotonic()))
            case Attend(supervisor=supervisor):
                self._supervisor = supervisor
            case ReportMemory(reply_to=reply_to):
                tell(reply_to, {id_: known_health(worker) for id_, worker in self._workers.items()})
            case unknown:
                self.unexpected(unknown)

    # ── registrations ────────────────────────────────────────────────────────────────────

    def _register(self, request: Register) -> None:
        known = self._workers.get(request.component_id)
        if known is not None and isinstance(known.state, MarkedFailed):
            tell(self._supervisor, RegistrationRefused(request.component_id, request.generation))
            return
        if known is not None and known.generation == request.generation:
            return
        now = self._runtime.clock.monotonic()
        worker = self._workers[request.component_id] = observed(request, now)
        self._mirror.mark(worker)
        taken = self._known.pop(request.component_id, None)
        if taken is None or taken.generation != request.generation:
            self._watch(worker)
            return
        restore(worker, taken)
        if worker.due is not None and not worker.silence_is_allowed and now - worker.due > ABSENCE_S:
            self._extend(worker)  # the former supervisor was suspended and had no time to notice it
        # What it sent during the upgrade is still in its channel: no silence counts before that is read.
        self._watch(worker, now + min(ABSENCE_S, now - self._known_at))

    def _mark_failed(self, component_id: str) -> None:
        worker = self._workers.get(component_id)
        if worker is None:
            # It failed in a former run, so this run has no incarnation of it.
            now = self._runtime.clock.monotonic()
            self._workers[component_id] = ObservedWorker(
                component_id, 0, HealthPolicy(), False, MarkedFailed(), now
            )
            self._mirror.mark(self._workers[component_id])
        else:
            self._advance(worker, GivenUp())

    def _set_paused(self, component_id: str, paused: bool) -> None:
        worker = self._workers.get(component_id)
        if worker is None or worker.paused == paused:
            return
        worker.paused = paused
        if not paused:
            self._grant(worker)
            self._watch(worker)

    # ── what happens to workers ────────────────────────────────────────────────────────────────────

    def _frame(self, component_id: str, generation: int, frame: Frame) -> None:
        worker = self._current(component_id, generation)
        if worker is None or worker.state.status in (Status.DEAD, Status.FAILED):
            return
        if frame.component_id is not None and frame.component_id != component_id:
            text = "health: {} sent a frame with the id of {!r}"
            logger.bind(worker=component_id).warning(text, component_id, frame.component_id)
        worker.heartbeat_wall_ms = self._runtime.clock.wall_ms()
        now = worker.heard_at = self._runtime.clock.monotonic()
        self._mirror.heard(component_id)
        worker.progress = progress.after_frame(worker.progress, frame, now)
        worker.extensions = 0
        job = frame.job
        if job != worker.job:
            worker.job = job
            taken = JobChanged(component_id, generation, job)
            tell(self._supervisor, taken)
            tell(self.persistence, taken)
            self._mirror.mark(worker)
        if worker.is_mirror_old(now):
            self._mirror.mark(worker)
        self._advance(worker, Reported(frame))

    def _noticed(self, component_id: str, generation: int, notice: NotifyDatagram) -> None:
        worker = self._current(component_id, generation)
        if worker is None or worker.state.status in (Status.DEAD, Status.FAILED):
            return
        worker.said = worker.said if notice.status is None else notice.status
        worker.watchdog = watchdog.after_notice(worker.watchdog, notice, self._runtime.clock.monotonic())
        for trigger in triggers_of(notice):
            self._advance(worker, trigger)
        self._watch(worker)

    def _probed(self, message: LifeProbed) -> None:
        worker = self._current(message.component_id, message.generation)
        if worker is not None:
            now = self._runtime.clock.monotonic()
            self._advance(worker, worker.probed(message.is_good, message.words, now, self._open_breakers))

    def _started(self, message: ProcessStarted) -> None:
        component_id, generation = message.component_id, message.generation
        begun = GenerationStarted(component_id, generation, self._runtime.clock.wall_ms())
        worker = self._current(component_id, generation)
        if worker is None:  # it is being stopped already
            tell(self.persistence, Persist((begun,), is_urgent=False))
            return
        worker.pid, worker.start_note = message.pid, message.note
        # Sent by this actor, so that no subscriber receives its health or its death before its start.
        started = WorkerStarted(component_id, generation, message.pid, message.note)
        tell(self.persistence, Persist((begun, started), is_urgent=False))
        worker.since = self._runtime.clock.monotonic()
        if worker.awaits_launch:
            self._advance(worker, Launched())

    def _start_delayed(self, component_id: str, generation: int) -> None:
        """The machine has no room for it yet: its time to become healthy starts again."""
        worker = self._current(component_id, generation)
        if worker is not None:
            self._grant(worker)

    def _limit_exceeded(self, kill: ExpectLimitKill) -> None:
        worker = self._current(kill.component_id, kill.generation)
        if worker is not None:
            worker.limit_exceeded = kill

    def _exited(self, component_id: str, generation: int, exit_: Exit, remains: Remains | None) -> None:
        """A process ended; if the supervisor ended it for exceeding a limit, that is the cause."""
        lost = Lost(exit_.cause, exit_)
        worker = self._current(component_id, generation)
        kill = None if worker is None else worker.limit_exceeded
        if kill is not None and (kill.timeout or exit_.signal == signal.SIGKILL):
            cause = Cause.TIMEOUT if kill.timeout else Cause.RESOURCE_LIMIT
            lost = Lost(cause, exit_, kill.detail)
        self._lost(component_id, generation, lost, remains)

    def _lost(self, component_id: str, generation: int, lost: Lost, remains: Remains | None = None) -> None:
        worker = self._current(component_id, generation)
        if worker is not None:
            self._advance(worker, lost, remains)

    def _found(self, component_id: str, generation: int | None) -> None:
        """Compare with what runs after an actor was restarted; repeat the last change, which may be lost."""
        worker = self._workers.get(component_id)
        if worker is None:
            return
        before = worker.last_change
        if generation != worker.generation:
            self._advance(worker, Lost(Cause.UNKNOWN, detail="ended unnoticed"))
        elif worker.awaits_launch:
            self._advance(worker, Launched())
        if worker.last_change is before is not None:
            tell(self._supervisor, before)

    # ── deadlines ────────────────────────────────────────────────────────────────────────

    def _watch(self, worker: ObservedWorker, not_before: float = 0.0) -> None:
        """Queue the worker's deadline, if it has one."""
        due = worker.due
        if due is None or worker.silence_is_allowed:
            return
        due = max(due, not_before)
        if worker.checked_at is not None and worker.checked_at <= due:
            return
        worker.checked_at = due
        self._deadlines.add((due, worker.component_id, worker.generation))

    def _is_wanted(self, deadline: Deadline) -> bool:
        due, component_id, generation = deadline
        worker = self._current(component_id, generation)
        return worker is not None and worker.checked_at == due

    def _deadline_reached(self, due: float) -> None:
        if not self._deadlines.is_next(due):
            return
        now = self._runtime.clock.monotonic()
        self._extend_after_absence(now - due)
        for _, component_id, _ in self._deadlines.take_due(now):
            worker = self._workers[component_id]
            worker.checked_at = None
            if not worker.silence_is_allowed:
                self._elapsed(worker, now)
        self._deadlines.arm_again()

    def _elapsed(self, worker: ObservedWorker, now: float) -> None:
        stuck = worker.stuck(now)
        if stuck is not None or worker.must_report:
            self._advance(worker, stuck or _ELAPSED)
        else:
            self._watch(worker)

    def _extend_after_absence(self, late: float) -> None:
        """After a suspend every heartbeat looks overdue; the frames are still in the channels."""
        if late > ABSENCE_S:
            for worker in self._workers.values():
                self._extend(worker)

    def _extend(self, worker: ObservedWorker) -> None:
        if worker.extensions < MOST_EXTENSIONS:
            worker.extensions += 1
            self._grant(worker)

    def _grant(self, worker: ObservedWorker) -> None:
        worker.grant(self._runtime.clock.monotonic())
        self._advance(worker, Granted())

    # ── carrying it out ──────────────────────────────────────────────────────────────────

    def _current(self, component_id: str, generation: int) -> ObservedWorker | None:
        worker = self._workers.get(component_id)
        return worker if worker is not None and worker.generation == generation else None

    def _advance(self, worker: ObservedWorker, trigger: Trigger, remains: Remains | None = None) -> None:
        now = self._runtime.clock.monotonic()
        step = advance(worker.state, trigger, worker.policy, now)
        if step.change is None:
            worker.state = step.state
            self._watch(worker)
            return
        death = None
        if step.change.new is Status.DEAD:
            death = self._death(worker, step.change, now, remains)
        changed = StatusChanged(
            component_id=worker.component_id,
            generation=worker.generation,
            old=step.change.old,
            new=step.change.new,
            at=now,
            death=death,
            detail=step.change.detail,
            misses=step.change.misses,
            recover_for_s=step.change.recover_for_s,
        )
        worker.state, worker.last_change = step.state, changed
        if changed.new is Status.HEALTHY:
            worker.ready(now)
        tell(self._supervisor, changed)
        if death is None:
            # The Supervisor publishes a death together with its decision.
            tell(self.persistence, changed)
        self._watch(worker)
        self._mirror.mark(worker)

    def _death(self, worker: ObservedWorker, change: HealthChange, now: float, left: Remains | None) -> Death:
        if change.cause in (Cause.HEARTBEAT_LOST, Cause.NO_PROGRESS):
            # The kernel's state of a hung process tells a stopped one from a busy one.
            condition = self._processes.condition(worker.component_id)
            change = replace(change, detail=f"process {condition}, {change.detail}")
        return worker.death(change, now, left)
