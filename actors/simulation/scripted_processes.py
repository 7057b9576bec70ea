"""The scripted process table: what each incarnation of each worker does.

A `Script` is asked for the life of every incarnation. The table plays it in virtual time:
frames at their interval, the end when it comes, signals as the life takes them.
"""

from __future__ import annotations

import signal as signals
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..deaths.death import Exit, Job
from ..facts.frames import Frame
from ..facts.usage import Usage
from ..messages.internal import (
    ChannelClosed,
    FrameReceived,
    ProcessExited,
    ProcessFound,
    ProcessStarted,
    SpawnFailed,
)
from ..ports import Control, Receiver, Runtime, SpawnRequest, Timer
from ..runtime.resilient_actor import tell


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """What one incarnation does."""

    dies_after_s: float | None = None
    exit: Exit = Exit(code=1)
    healthy_after_s: float | None = 0.0
    """When it first says that it is healthy; None is never."""
    heartbeat_s: float | None = 2.0
    """How often it says so again; None is never."""
    spawn_error: str | None = None
    """It cannot even be started."""
    stops_after_s: float | None = 0.0
    """How long it takes to end once asked; None ignores being asked."""
    ignores_term: bool = False
    shows_stacks: bool = False
    """It has said that it can write its stacks down."""
    ignores_kill: bool = False
    job: Job | None = None
    """What it works on, unless it is told to idle."""
    usage: Callable[[float], Usage] | None = None
    """What it uses, by the seconds since its start; None cannot be looked up."""


Script = Callable[[int], Life]
"""The life of the incarnation with this generation."""


def runs_forever(_generation: int) -> Life:
    """Healthy from the start, and to the end."""
    return Life()


def crashes_after(seconds: float, exit_: Exit = Exit(code=1)) -> Script:  # noqa: B008  # immutable
    """Every incarnation dies this long after its start."""
    return lambda _generation: Life(dies_after_s=seconds, exit=exit_)


@dataclass(frozen=True, slots=True)
class _Beat:
    """To the incarnation itself: time for a frame."""


@dataclass(frozen=True, slots=True)
class _End:
    """To the incarnation itself: its end."""

    exit: Exit


class _Incarnation:
    """One running process of the script."""

    def __init__(self, table: ScriptedProcesses, request: SpawnRequest, life: Life, pid: int) -> None:
        self.table = table
        self.request = request
        self.life = life
        self.pid = pid
        self.since = table.runtime.clock.monotonic()
        self.alive = True
        self.frozen = False
        self.idle = False
        self._timers: list[Timer] = []

    def begin(self) -> None:
        """Start to live."""
        if self.life.dies_after_s is not None:
            self.later(self.life.dies_after_s, _End(self.life.exit))
        if self.life.healthy_after_s is not None and self.request.spec.run.reports_health:
            self.later(self.life.healthy_after_s, _Beat())

    def later(self, delay_s: float, message: _Beat | _End) -> None:
        """Do something later."""
        self._timers.append(self.table.runtime.timers.after(delay_s, self, message))

    def tell(self, message: _Beat | _End) -> None:
        """A timer of its own came due."""
        if not self.alive:
            return
        match message:
            case _Beat():
                self.say(Frame(status="healthy", current_job=None if self.idle else self.life.job))
                if self.life.heartbeat_s is not None:
                    self.later(self.life.heartbeat_s, message)
            case _End(exit=exit_):
                self.end(exit_)

    def say(self, frame: Frame) -> None:
        """Send a frame, unless it is frozen."""
        if self.alive and not self.frozen:
            spec = self.request.spec
            tell(self.request.monitor, FrameReceived(spec.id, self.request.generation, frame))

    def end(self, exit_: Exit) -> None:
        """Die, and be reaped at once."""
        if not self.alive:
            return
        self.alive = False
        for timer in self._timers:
            timer.cancel()
        request = self.request
        self.table.ends.append((self.table.runtime.clock.monotonic(), request.spec.id, request.generation))
        exited = ProcessExited(request.spec.id, request.generation, exit_)
        tell(request.observer, exited)
        tell(request.monitor, exited)


class ScriptedProcesses:
    """A process table without processes."""

    def __init__(self, runtime: Runtime, scripts: Mapping[str, Script] | None = None) -> None:
        self.runtime = runtime
        self.scripts: dict[str, Script] = dict(scripts or {})
        self.starts: list[tuple[float, str, int]] = []
        """Every spawn that was asked for: when, who, which generation."""
        self.ends: list[tuple[float, str, int]] = []
        """Every end of a process, likewise."""
        self.controls: list[tuple[float, str, Control]] = []
        """What was said to the living over their channels."""
        self.signals: list[tuple[float, str, int]] = []
        """The signals that the supervisor sent to the living."""
        self.stacks: list[tuple[float, str]] = []
        """Whose stacks were asked for, and when."""
        self.overlaps: list[tuple[float, str, int]] = []
        """Spawns while an earlier process of the same worker lived: there must never be one."""
        self._pids = 1000
        self._table: dict[str, _Incarnation] = {}

    def spawn(self, request: SpawnRequest) -> None:
        """Begin the life that the script has for this incarnation."""
        id_, generation = request.spec.id, request.generation
        self.starts.append((self.runtime.clock.monotonic(), id_, generation))
        life = self.scripts.get(id_, runs_forever)(generation)
        if life.spawn_error is not None:
            failed = SpawnFailed(id_, generation, life.spawn_error)
            tell(request.observer, failed)
            tell(request.monitor, failed)
            return
        if self.alive(id_):
            self.overlaps.append((self.runtime.clock.monotonic(), id_, generation))
        self._pids += 1
        incarnation = self._table[id_] = _Incarnation(self, request, life, self._pids)
        started = ProcessStarted(id_, generation, self._pids)
        tell(request.observer, started)
        tell(request.monitor, started)
        incarnation.begin()

    def send(self, component_id: str, generation: int, control: Control) -> None:
        """Ask the incarnation to stop, to idle or to go on, as its script takes it."""
        incarnation = self._living(component_id, generation)
        if incarnation is None:
            return
        self.controls.append((self.runtime.clock.monotonic(), component_id, control))
        match control:
            case Control.STOP:
                if incarnation.life.stops_after_s is not None and not incarnation.frozen:
                    incarnation.later(incarnation.life.stops_after_s, _End(Exit(code=0)))
            case Control.PAUSE | Control.RESUME:
                incarnation.idle = control is Control.PAUSE

    def signal(self, component_id: str, generation: int, signum: int) -> None:
        """Send a signal, as the script takes it."""
        incarnation = self._living(component_id, generation)
        if incarnation is None:
            return
        self.signals.append((self.runtime.clock.monotonic(), component_id, signum))
        life = incarnation.life
        match signum:
            case signals.SIGKILL if not life.ignores_kill:
                incarnation.end(Exit(signal=signum))
            case signals.SIGSTOP:
                incarnation.frozen = True
            case signals.SIGCONT:
                incarnation.frozen = False
            case _ if signum in (signals.SIGTERM, incarnation.request.spec.stop.signal_number):
                if not life.ignores_term and not incarnation.frozen:
                    incarnation.end(Exit(signal=signum))
            case _:
                pass

    def can_show_stacks(self, component_id: str, generation: int) -> bool:
        """As its script has it."""
        running = self._living(component_id, generation)
        return running is not None and running.life.shows_stacks

    def show_stacks(self, component_id: str, generation: int) -> None:
        """Note that it was asked for; scripts have no stacks."""
        if self._living(component_id, generation) is not None:
            self.stacks.append((self.runtime.clock.monotonic(), component_id))

    def report(self, component_id: str, receiver: Receiver) -> None:
        """Say what runs."""
        running = self._table.get(component_id)
        if running is None or not running.alive:
            tell(receiver, ProcessFound(component_id, None))
        else:
            tell(receiver, ProcessFound(component_id, running.request.generation, running.pid))

    def output(self, component_id: str) -> tuple[str, ...]:
        """Scripts write nothing."""
        return ()

    def condition(self, component_id: str) -> str:
        """Frozen ones are stopped."""
        running = self._table.get(component_id)
        if running is None or not running.alive:
            return "gone"
        return "stopped" if running.frozen else "sleeping"

    def usage(self, component_id: str, generation: int) -> Usage | None:
        """What the script says that it uses."""
        running = self._living(component_id, generation)
        if running is None:
            return None
        if running.life.usage is None:
            raise OSError("nothing can be seen of it")
        return running.life.usage(self.runtime.clock.monotonic() - running.since)

    def forget(self, component_id: str) -> None:
        """Drop the worker from the table."""
        self._table.pop(component_id, None)

    # ── what a chaos script does to it ───────────────────────────────────────────────────

    def alive(self, component_id: str) -> bool:
        """Whether a process of this worker lives."""
        running = self._table.get(component_id)
        return running is not None and running.alive

    def kill(self, component_id: str, signum: int = signals.SIGKILL) -> None:
        """Kill whatever runs under this id, as somebody from outside would."""
        running = self._table.get(component_id)
        if running is not None:
            running.end(Exit(signal=signum))

    def freeze(self, component_id: str, frozen: bool = True) -> None:
        """Stop whatever runs under this id as SIGSTOP does, or let it go on."""
        running = self._table.get(component_id)
        if running is not None:
            running.frozen = frozen

    def close_channel(self, component_id: str) -> None:
        """Let the worker close its channel and live on."""
        request = self._table[component_id].request
        tell(request.monitor, ChannelClosed(component_id, request.generation))

    def say(self, component_id: str, frame: Frame) -> None:
        """Let the worker send a frame of its own."""
        self._table[component_id].say(frame)

    def _living(self, component_id: str, generation: int) -> _Incarnation | None:
        running = self._table.get(component_id)
        if running is None or not running.alive or running.request.generation != generation:
            return None
        return running
