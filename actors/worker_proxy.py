"""The WorkerProxy: one worker's process, from spawn to reap.

Owns the state of that process and the timer of its stop ladder. Hears what to do from the
Supervisor and what happened from the process table; tells the Supervisor `ProcessStarted`,
`ProcessGone` and `WorkerUnkillable`. If it raises, it asks the process table what runs, and
the Supervisor repeats its wishes.
"""

from __future__ import annotations

from msgspec.structs import replace

from .deaths.death import Exit, signal_name
from .messages import StopStepTaken, WorkerUnkillable
from .messages.internal import (
    LadderElapsed,
    PauseProcess,
    ProcessExited,
    ProcessFound,
    ProcessGone,
    ProcessReported,
    ProcessStarted,
    ProxyMessage,
    ReportProcess,
    SpawnFailed,
    StartProcess,
    StopProcess,
    UseSpec,
)
from .ports import Control, Processes, Receiver, Runtime, SpawnRequest, Timer
from .rules.stop_ladder import (
    Absent,
    Alive,
    Ask,
    Effect,
    Ended,
    RungElapsed,
    Send,
    ShowStacks,
    Spawn,
    Spawning,
    Start,
    Started,
    State,
    Stop,
    Stopping,
    TellGone,
    TellUnkillable,
    Terms,
    Trigger,
    Wait,
    advance,
)
from .runtime.resilient_actor import ResilientActor, tell
from .spec.worker_spec import WorkerSpec


class WorkerProxy(ResilientActor):
    """Stands for one worker's process."""

    def __init__(
        self,
        spec: WorkerSpec,
        *,
        runtime: Runtime,
        processes: Processes,
        supervisor: Receiver,
        monitor: Receiver,
        broker: Receiver,
    ) -> None:
        super().__init__(broker=broker)
        self._spec = spec
        self._runtime = runtime
        self._processes = processes
        self._supervisor = supervisor
        self._monitor = monitor
        self._terms = Terms(spec.stop, spec.run.reports_health)
        self._state: State = Absent()
        self._told = 0
        """The latest generation that was to be started."""
        self._timer: Timer | None = None

    def recover(self) -> None:
        """Ask what runs; a ladder that may have lost its step begins anew when it is wished for again."""
        self._cancel_timer()
        if isinstance(self._state, Stopping):
            self._state = Alive(self._state.generation, self._state.pid)
        self._ask_what_runs()

    def handle(self, message: ProxyMessage) -> None:
        """Do what is wanted, take note of what happened."""
        match message:
            case StartProcess(generation=generation):
                self._told = generation
                self._advance(Start(generation))
            case StopProcess(generation=generation, urgency=urgency, hung=hung):
                # One that cannot show its stacks is not waited for.
                asked = hung and self._processes.can_show_stacks(self._spec.id, generation)
                self._advance(Stop(generation, urgency, asked))
            case PauseProcess(generation=generation, paused=paused):
                control = Control.PAUSE if paused else Control.RESUME
                self._processes.send(self._spec.id, generation, control)
            case UseSpec(spec=spec):
                self._spec, self._terms = spec, Terms(spec.stop, spec.run.reports_health)
            case LadderElapsed(generation=generation, step=step):
                self._advance(RungElapsed(generation, step))
            case ProcessStarted(generation=generation, pid=pid):
                self._advance(Started(generation, pid))
                tell(self._supervisor, message)
            case SpawnFailed(generation=generation):
                self._advance(Ended(generation, Exit()))
            case ProcessExited(generation=generation, exit=exit_, remains=remains):
                self._advance(Ended(generation, exit_, remains))
            case ReportProcess():
                self._ask_what_runs()
            case ProcessFound():
                self._found(message)
            case unknown:
                self.unexpected(unknown)

    def _ask_what_runs(self) -> None:
        self._processes.report(self._spec.id, _TaggedReply(self.actor_ref, self._told))

    def _found(self, found: ProcessFound) -> None:
        if isinstance(self._state, Spawning) and found.told != self._told:
            return  # asked before this start: the answer knows nothing of it
        if found.generation is None or found.pid is None:
            self._cancel_timer()
            self._state = Absent()
        elif isinstance(self._state, Absent | Spawning):
            self._state = Alive(found.generation, found.pid)
        tell(self._supervisor, ProcessReported(self._spec.id, found.generation, self._told))

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
            case ShowStacks(generation=generation):
                self._processes.show_stacks(id_, generation)
                self._tell_step(generation, "stacks")
            case Send(generation=generation, signal=signum):
                self._processes.signal(id_, generation, signum)
                self._tell_step(generation, signal_name(signum))
            case Wait(generation=generation, step=step, seconds=seconds):
                self._cancel_timer()
                timer = LadderElapsed(generation, step)
                self._timer = self._runtime.timers.after(seconds, self.actor_ref, timer)
            case TellGone(generation=generation, exit=exit_, forced=forced, remains=remains):
                self._cancel_timer()
                tell(self._supervisor, ProcessGone(id_, generation, exit_, forced, remains))
            case TellUnkillable(generation=generation, pid=pid):
                unkillable = WorkerUnkillable(id_, generation, pid)
                tell(self._supervisor, unkillable)
                tell(self.broker, unkillable)

    def _tell_step(self, generation: int, step: str) -> None:
        tell(self.broker, StopStepTaken(self._spec.id, generation, step))

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _TaggedReply:
    """Has the answer say what its asker knew: one that comes late must not be taken for a new one."""

    def __init__(self, proxy: Receiver, told: int) -> None:
        self._proxy = proxy
        self._told = told

    def tell(self, message: ProcessFound) -> None:
        """Hand the answer on."""
        self._proxy.tell(replace(message, told=self._told))
