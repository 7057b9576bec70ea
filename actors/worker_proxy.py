"""The WorkerProxy: one worker's process, from spawn to reap.

Owns the state of that process and the timer of its stop ladder. Receives orders from the
Supervisor and events from the process table; sends the Supervisor `ProcessStarted`,
`ProcessGone` and `WorkerUnkillable`. If it raises, it asks the process table what runs, and
the Supervisor repeats its orders.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from .deaths.death import Exit, signal_name
from .messages import StopStepTaken, WorkerUnkillable
from .messages.internal.hand_over import ReportMemory
from .messages.internal.to_proxy import (
    AdoptProcess,
    LadderElapsed,
    PauseProcess,
    ProcessExited,
    ProcessFound,
    ProcessStarted,
    ProxyMessage,
    ReportProcess,
    SpawnFailed,
    StartProcess,
    StopProcess,
    UseSpec,
    WorkDrained,
)
from .messages.internal.to_supervisor import ProcessGone, ProcessReported
from .ports import Control, Processes, Receiver, Runtime, SpawnRequest, Timer
from .rules.stop_ladder import (
    Absent,
    Alive,
    Ask,
    AskToDrain,
    BeingStopped,
    Drained,
    Effect,
    FoundNoRoom,
    Gone,
    RungElapsed,
    Send,
    ShowStacks,
    Spawn,
    Spawning,
    Started,
    StartOrdered,
    State,
    StopOrdered,
    TellGone,
    TellNotStarted,
    TellUnkillable,
    Terms,
    Trigger,
    Unkillable,
    Wait,
    advance,
)
from .runtime.resilient_actor import ResilientActor, tell
from .spec.worker_spec import WorkerSpec


class KnownProcess(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What only the proxy knows, as it is handed over when the supervisor is upgraded."""

    component_id: str
    ordered: int
    state: State
    step_due: float | None = None


class WorkerProxy(ResilientActor):
    """Controls one worker's process."""

    def __init__(
        self,
        spec: WorkerSpec,
        *,
        runtime: Runtime,
        processes: Processes,
        supervisor: Receiver,
        monitor: Receiver,
        persistence: Receiver,
        known: KnownProcess | None = None,
    ) -> None:
        super().__init__(persistence=persistence)
        self._spec = spec
        self._runtime = runtime
        self._processes = processes
        self._supervisor = supervisor
        self._monitor = monitor
        self._terms = Terms(spec.stop, spec.run.reports_health)
        self._state: State = Absent()
        self._ordered = 0
        """The latest generation that the Supervisor ordered."""
        self._timer: Timer | None = None
        self._step_due: float | None = None
        """When the current step of the ladder has waited long enough."""
        if known is not None:
            self._take_over(known)

    def _take_over(self, known: KnownProcess) -> None:
        """Go on with the process of the former program; a start that it had not begun is requested again."""
        self._ordered = known.ordered
        self._state = Absent() if isinstance(known.state, Spawning) else known.state
        if isinstance(self._state, BeingStopped) and known.step_due is not None:
            left = max(0.0, known.step_due - self._runtime.clock.monotonic())
            self._wait(left, LadderElapsed(self._state.generation, self._state.step))

    def recover(self) -> None:
        """Ask what runs; an interrupted ladder starts over when the Supervisor repeats its order."""
        self._cancel_timer()
        if isinstance(self._state, BeingStopped):
            self._state = Alive(self._state.generation, self._state.pid)
        self._ask_what_runs()

    def handle(self, message: ProxyMessage) -> None:
        """Handle one message."""
        match message:
            case StartProcess(generation=generation):
                self._ordered = generation
                self._advance(StartOrdered(generation))
            case StopProcess(generation=generation, urgency=urgency, hung=hung):
                # A worker that cannot write its stacks gets no time for it.
                asked = hung and self._processes.can_show_stacks(self._spec.id, generation)
                self._advance(StopOrdered(generation, urgency, asked))
            case PauseProcess(generation=generation, paused=paused):
                control = Control.PAUSE if paused else Control.RESUME
                self._processes.send(self._spec.id, generation, control)
            case UseSpec(spec=spec):
                self._spec, self._terms = spec, Terms(spec.stop, spec.run.reports_health)
            case LadderElapsed(generation=generation, step=step):
                self._advance(RungElapsed(generation, step))
            case WorkDrained(generation=generation, problem=problem):
                self._drained(generation, problem)
            case ProcessStarted(generation=generation, pid=pid):
                self._advance(Started(generation, pid))
                tell(self._supervisor, message)
            case SpawnFailed(generation=generation, scarce=True):
                self._advance(FoundNoRoom(generation))
                tell(self._supervisor, message)
            case SpawnFailed(generation=generation):
                self._advance(Gone(generation, Exit()))
            case ProcessExited(generation=generation, exit=exit_, remains=remains):
                self._advance(Gone(generation, exit_, remains))
            case ReportProcess():
                self._ask_what_runs()
            case AdoptProcess():
                self._adopt()
            case ReportMemory(reply_to=reply_to):
                tell(reply_to, KnownProcess(self._spec.id, self._ordered, self._state, self._step_due))
            case ProcessFound():
                self._found(message)
            case unknown:
                self.unexpected(unknown)

    def _adopt(self) -> None:
        if isinstance(self._state, Alive | BeingStopped | Unkillable):
            request = SpawnRequest(self._spec, self._state.generation, self.actor_ref, self._monitor)
            self._processes.adopt(request)
        drain = self._terms.policy.drain
        if (
            isinstance(self._state, BeingStopped)
            and self._state.draining
            and drain is not None
            and drain.probe
        ):
            self._processes.drain(self._spec.id, self._state.generation, drain)  # it was cut off

    def _ask_what_runs(self) -> None:
        self._processes.report(self._spec.id, _TaggedReply(self.actor_ref, self._ordered))

    def _found(self, found: ProcessFound) -> None:
        if isinstance(self._state, Spawning) and found.ordered != self._ordered:
            return  # asked before this start, so the answer is stale
        if isinstance(self._state, Spawning) and self._state.waits:
            found = replace(found, generation=self._state.generation)  # it is still to come
        elif found.generation is None or found.pid is None:
            self._cancel_timer()
            self._state = Absent()
        elif isinstance(self._state, Absent | Spawning):
            self._state = Alive(found.generation, found.pid)
        tell(self._supervisor, ProcessReported(self._spec.id, found.generation, self._ordered))

    def _advance(self, trigger: Trigger) -> None:
        step = advance(self._state, trigger, self._terms)
        self._state = step.state
        for effect in step.effects:
            self._perform(effect)

    def _perform(self, effect: Effect) -> None:
        id_ = self._spec.id
        match effect:
            case Spawn(generation=generation):
                self._processes.spawn(SpawnRequest(self._spec, generation, self.actor_ref, self._monitor))
            case Ask(generation=generation):
                self._processes.send(id_, generation, Control.STOP)
            case AskToDrain(generation=generation):
                assert self._terms.policy.drain is not None
                self._processes.drain(id_, generation, self._terms.policy.drain)
                self._tell_step(generation, "drain")
            case ShowStacks(generation=generation):
                self._processes.show_stacks(id_, generation)
                self._tell_step(generation, "stacks")
            case Send(generation=generation, signal=signum):
                self._processes.signal(id_, generation, signum)
                self._tell_step(generation, signal_name(signum))
            case Wait(generation=generation, step=step, seconds=seconds):
                self._wait(seconds, LadderElapsed(generation, step))
            case TellGone(generation=generation, exit=exit_, forced=forced, remains=remains):
                self._cancel_timer()
                tell(self._supervisor, ProcessGone(id_, generation, exit_, forced, remains))
            case TellNotStarted(generation=generation):
                tell(self._monitor, SpawnFailed(id_, generation, "stopped before it could be started"))
            case TellUnkillable(generation=generation, pid=pid):
                unkillable = WorkerUnkillable(id_, generation, pid)
                tell(self._supervisor, unkillable)
                tell(self.persistence, unkillable)

    def _drained(self, generation: int, problem: str) -> None:
        if isinstance(self._state, BeingStopped) and self._state.draining:
            self._tell_step(generation, "not_drained" if problem else "drained", problem)
        self._advance(Drained(generation))

    def _tell_step(self, generation: int, step: str, detail: str = "") -> None:
        tell(self.persistence, StopStepTaken(self._spec.id, generation, step, detail))

    def _wait(self, seconds: float, message: LadderElapsed) -> None:
        self._cancel_timer()
        self._step_due = self._runtime.clock.monotonic() + seconds
        self._timer = self._runtime.timers.after(seconds, self.actor_ref, message)

    def _cancel_timer(self) -> None:
        self._step_due = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _TaggedReply:
    """Adds to the reply which generation was ordered when it was asked for, so that a stale one is known."""

    def __init__(self, proxy: Receiver, ordered: int) -> None:
        self._proxy = proxy
        self._ordered = ordered

    def tell(self, message: ProcessFound) -> None:
        """Pass the reply on."""
        self._proxy.tell(replace(message, ordered=self._ordered))
