"""The process table in virtual time: no processes, only scripts of what each incarnation does.

Scenarios and tests of single actors use the same table. It records starts and ends in a history, and the
commands that it receives in lists.
"""

from __future__ import annotations

import signal as signals
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from math import inf

from ...deaths.death import Exit, Job
from ...facts.frames import Frame
from ...facts.usage import Usage
from ...messages.internal.to_monitor import ChannelClosed
from ...messages.internal.to_proxy import ProcessFound, ProcessStarted, SpawnFailed, WorkDrained
from ...ports import CancelledJob, Control, Receiver, Runtime, SpawnRequest
from ...runtime.resilient_actor import tell
from ...spec.deployment.drain_policy import DrainPolicy
from ..scenarios.behaviours import Behaviour
from ..scenarios.history import Asked, Ended, History, Idled, SpawnBegun, Spawned, SpawnRefused
from ..scenarios.moves import Phase
from .scripted_process import CLEANUP, FAULT, SUPERVISOR, ScriptedProcess
from .scripted_queues import ScriptedQueues

Script = Callable[[int], Behaviour]
"""The behaviour of the incarnation with this generation."""

_LITTLE = Usage(memory_mb=1.0)


def runs_forever(_generation: int) -> Behaviour:
    """Healthy from the start to the end."""
    return Behaviour()


def crashes_after(seconds: float, exit_: Exit = Exit(code=1)) -> Script:  # noqa: B008  # immutable
    """Every incarnation dies this long after its start."""
    return lambda _generation: Life(dies_after_s=seconds, exit=exit_)


def unreadable_usage(_age_s: float) -> Usage:
    """For `Behaviour.usage`: the operating system does not report the usage of the process."""
    raise OSError("the usage of a scripted process is not readable")


class Life(Behaviour):
    """A `Behaviour` with other parameters, for tests of single actors."""

    __slots__ = ()

    def __init__(
        self,
        *,
        dies_after_s: float | None = None,
        exit: Exit = Exit(code=1),  # noqa: B008  # immutable
        healthy_after_s: float | None = 0.0,
        heartbeat_s: float | None = 2.0,
        spawn_error: str | None = None,
        stops_after_s: float | None = 0.0,
        ignores_term: bool = False,
        shows_stacks: bool = False,
        ignores_kill: bool = False,
        job: Job | None = None,
        usage: Callable[[float], Usage] | None = None,
    ) -> None:
        """Translate: `heartbeat_s=None` is one frame only, `stops_after_s=None` ignores requests."""
        super().__init__(
            dies_after=dies_after_s,
            exit=exit.code if exit.code is not None else 1,
            signal=exit.signal,
            healthy_after=healthy_after_s,
            heartbeat=inf if heartbeat_s is None else heartbeat_s,
            cannot_be_spawned=spawn_error,
            ignores_request=stops_after_s is None,
            stops_after=stops_after_s or 0.0,
            ignores_term=ignores_term,
            shows_stacks=shows_stacks,
            ignores_kill=ignores_kill,
            job=job,
            usage=usage or unreadable_usage,
        )


class ScriptedProcesses:
    """A process table without processes, for one supervisor."""

    def __init__(
        self,
        runtime: Runtime,
        scripts: Mapping[str, Script] | None = None,
        *,
        history: History | None = None,
        pids: Iterator[int] | None = None,
        changes: Sequence[float] | None = None,
        reached: Callable[[Phase, str], None] = lambda phase, worker: None,
        queues: ScriptedQueues | None = None,
    ) -> None:
        """Create an empty table.

        Args:
            runtime: supplies the clock and the timers of the processes.
            scripts: what the workers do, by id; a worker without a script runs until it is stopped.
            history: where starts and ends are recorded; None creates one.
            pids: the pids of the processes in the order of their starts; None counts from 1001.
            changes: the times at which something may happen to heartbeats, sorted: heartbeats that
                cannot be missed until then are not sent. None sends all of them.
            reached: called when a worker is about to be started or stopped.
            queues: where workers take jobs; None: they take none.
        """
        self.runtime = runtime
        self.scripts: dict[str, Script] = dict(scripts or {})
        self.history = History() if history is None else history
        self.controls: list[tuple[float, str, Control | CancelledJob]] = []
        """The requests sent over the channels of living processes."""
        self.signals: list[tuple[float, str, int]] = []
        """The signals that the supervisor sent to living processes."""
        self.stacks: list[tuple[float, str]] = []
        """The requests for stack traces: when, and of which worker."""
        self.overlaps: list[tuple[float, str, int]] = []
        """Spawns while an earlier process of the same worker lived: there must never be one."""
        self._pids = pids or count(1001)
        self._changes = changes
        self._reached = reached
        self._queues = queues
        self._table: dict[str, ScriptedProcess] = {}
        self._starting: dict[str, list[Callable[[], None]]] = {}
        """What is asked of workers whose process is being started; it waits until the process exists."""
        self._is_open = True
        self._database_is_away = False

    def close(self) -> None:
        """The supervisor was killed: its guardian kills all processes, and none is started."""
        self._is_open = False
        for process in self._table.values():
            process.end(Exit(signal=signals.SIGKILL), CLEANUP)

    # ── for the actors ───────────────────────────────────────────────────────────────────

    def spawn(self, request: SpawnRequest) -> None:
        """Start the incarnation, with the behaviour that the script has for it."""
        id_, generation = request.spec.id, request.generation
        self._reached(Phase.SPAWN, id_)
        if not self._is_open:
            return
        behaviour, pid = self.scripts.get(id_, runs_forever)(generation), next(self._pids)
        if behaviour.cannot_be_spawned is not None:
            self._refuse(request, behaviour.cannot_be_spawned)
            return
        if behaviour.spawn_takes:
            self.history.add(SpawnBegun(self._now(), id_, generation))
            self._starting[id_] = []
            started = _Call(lambda: self._start_late(request, behaviour, pid))
            self.runtime.timers.after(behaviour.spawn_takes, started, None)
        else:
            self._start(request, behaviour, pid)

    def _start_late(self, request: SpawnRequest, behaviour: Behaviour, pid: int) -> None:
        """The process that took time to start exists now; what was asked of it meanwhile is done."""
        calls = self._starting.pop(request.spec.id, [])
        if self._is_open:
            self._start(request, behaviour, pid)
            for call in calls:
                call()

    def _once_started(self, component_id: str, call: Callable[[], None]) -> None:
        waiting = self._starting.get(component_id)
        call() if waiting is None else waiting.append(call)

    def _start(self, request: SpawnRequest, behaviour: Behaviour, pid: int) -> None:
        id_, generation = request.spec.id, request.generation
        if self.alive(id_):
            self.overlaps.append((self._now(), id_, generation))
        process = ScriptedProcess(
            self.runtime, self.history, request, behaviour, pid, self._changes, self._queues
        )
        self._table[id_] = process
        self.history.add(Spawned(self._now(), id_, generation, pid))
        started = ProcessStarted(id_, generation, pid)
        tell(request.observer, started)
        tell(request.monitor, started)
        process.start(database_is_away=self._database_is_away)

    def _refuse(self, request: SpawnRequest, error: str) -> None:
        id_, generation = request.spec.id, request.generation
        self.history.add(SpawnRefused(self._now(), id_, generation, error))
        failed = SpawnFailed(id_, generation, error)
        tell(request.observer, failed)
        tell(request.monitor, failed)

    def busy_s(self) -> float:
        """Nothing blocks in virtual time."""
        return 0.0

    def send(self, component_id: str, generation: int, control: Control | CancelledJob) -> None:
        """Ask the worker to stop, to idle or to continue, or to end a job."""
        self._once_started(component_id, lambda: self._send(component_id, generation, control))

    def _send(self, component_id: str, generation: int, control: Control | CancelledJob) -> None:
        process = self._of(component_id, generation)
        if process is None:
            return
        self.controls.append((self._now(), component_id, control))
        if control is Control.STOP:
            self.history.add(Asked(self._now(), component_id, generation))
            self._reached(Phase.STOP, component_id)
            if process.alive:
                process.request_stop()
        elif isinstance(control, Control):
            process.heartbeats.idle = control is Control.PAUSE
            self.history.add(Idled(self._now(), component_id, generation, process.heartbeats.idle))
        elif process.alive and process.jobs is not None:
            process.jobs.cancel(control.job_id, control.attempt)

    def drain(self, component_id: str, generation: int, drain: DrainPolicy) -> None:
        """Tell the worker to take no more work; it has none."""
        process = self._of(component_id, generation)
        if process is not None:
            self.controls.append((self._now(), component_id, Control.DRAIN))
            drained = WorkDrained(component_id, generation)
            self.runtime.timers.after(process.behaviour.drains_in_s, process.request.observer, drained)

    def signal(self, component_id: str, generation: int, signum: int) -> None:
        """Send the worker a signal, as the supervisor."""
        self._once_started(component_id, lambda: self._signal(component_id, generation, signum))

    def _signal(self, component_id: str, generation: int, signum: int) -> None:
        process = self._of(component_id, generation)
        if process is not None:
            self.signals.append((self._now(), component_id, signum))
            self.history.add(Asked(self._now(), component_id, generation, signum))
            self._reached(Phase.STOP, component_id)
            process.receive_signal(signum, SUPERVISOR)

    def adopt(self, request: SpawnRequest) -> None:
        """Report to the actors of the program that replaced the one which started the process."""
        process = self._of(request.spec.id, request.generation)
        if process is not None:
            process.report_to(request)

    def can_show_stacks(self, component_id: str, generation: int) -> bool:
        """Whether its behaviour includes it."""
        process = self._of(component_id, generation)
        return process is not None and process.behaviour.shows_stacks

    def show_stacks(self, component_id: str, generation: int) -> None:
        """Record the request; scripted processes have no stacks."""
        if self._of(component_id, generation) is not None:
            self.stacks.append((self._now(), component_id))

    def report(self, component_id: str, receiver: Receiver) -> None:
        """Report to the receiver which process runs, if any."""
        self._once_started(component_id, lambda: self._report(component_id, receiver))

    def _report(self, component_id: str, receiver: Receiver) -> None:
        process = self.living(component_id)
        if process is None:
            tell(receiver, ProcessFound(component_id, None))
        else:
            tell(receiver, ProcessFound(component_id, process.request.generation, process.pid))

    def output(self, component_id: str) -> tuple[str, ...]:
        """Scripted processes write nothing."""
        return ()

    def condition(self, component_id: str) -> str:
        """The state of the process, in the words of the operating system."""
        process = self.living(component_id)
        return "gone" if process is None else "stopped" if process.frozen else "sleeping"

    def usage(self, component_id: str, generation: int) -> Usage | None:
        """The resource usage of the process; very little unless its behaviour defines it."""
        process = self._of(component_id, generation)
        if process is None:
            return None
        usage = process.behaviour.usage
        return _LITTLE if usage is None else usage(self._now() - process.since)

    def forget(self, component_id: str) -> None:
        """Drop the worker from the table."""
        self._table.pop(component_id, None)

    # ── for scenarios and tests ──────────────────────────────────────────────────────────

    @property
    def starts(self) -> list[tuple[float, str, int]]:
        """Every requested spawn, also the refused ones: when, which worker, which generation."""
        return [(e.at, e.worker, e.generation) for e in self.history if isinstance(e, Spawned | SpawnRefused)]

    @property
    def ends(self) -> list[tuple[float, str, int]]:
        """Every end of a process, likewise."""
        return [(e.at, e.worker, e.generation) for e in self.history.of(Ended)]

    def living(self, component_id: str) -> ScriptedProcess | None:
        """The living process of a worker."""
        process = self._table.get(component_id)
        return process if process is not None and process.alive else None

    def latest(self, component_id: str) -> ScriptedProcess | None:
        """The latest process of a worker, dead or alive."""
        return self._table.get(component_id)

    def alive(self, component_id: str) -> bool:
        """Whether a process of this worker lives."""
        return self.living(component_id) is not None

    def kill(self, component_id: str, signum: int = signals.SIGKILL) -> None:
        """End the worker's process by a signal that does not come from the supervisor."""
        process = self._table.get(component_id)
        if process is not None:
            process.end(Exit(signal=signum), FAULT)

    def freeze(self, component_id: str, frozen: bool = True) -> None:
        """Stop the worker's process as SIGSTOP does, or continue it."""
        process = self.living(component_id)
        if process is not None:
            (process.freeze if frozen else process.thaw)()

    def close_channel(self, component_id: str) -> None:
        """Let the worker close its channel and keep running."""
        request = self._table[component_id].request
        tell(request.monitor, ChannelClosed(component_id, request.generation))

    def say(self, component_id: str, frame: Frame) -> None:
        """Let the worker send a frame of its own, unless it is dead or frozen."""
        process = self._table[component_id]
        if process.alive and not process.frozen:
            process.heartbeats.send(frame)

    def set_database(self, away: bool) -> None:
        """The database went away or came back; workers that need it now die."""
        self._database_is_away = away
        if self._queues is not None:
            self._queues.is_away = away
        if not away:
            return
        for process in self._table.values():
            needs = process.behaviour.needs_database
            if process.alive and needs is not None and self._now() - process.since < needs:
                process.die_without_database()

    def suspend_host(self) -> None:
        """The host is suspended now: no process sends heartbeats until it resumes."""
        for process in self._table.values():
            process.heartbeats.suspend()

    def _of(self, component_id: str, generation: int) -> ScriptedProcess | None:
        process = self.living(component_id)
        return process if process is not None and process.request.generation == generation else None

    def _now(self) -> float:
        return self.runtime.clock.monotonic()


class _Call:
    """A receiver of a timer, which calls a function."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call

    def tell(self, message: object) -> None:
        """The timer is due."""
        self._call()
