"""Records what the actors of a real supervisor do, and makes them fail where the scenario says so."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pykka

from rekindle.actors.messages import RolloutAdvanced, StatusChanged, StopWorkers
from rekindle.actors.messages.internal.to_persistence import Persist
from rekindle.actors.messages.internal.to_proxy import (
    ProcessExited,
    ProcessStarted,
    SpawnFailed,
    StartProcess,
    StopProcess,
)
from rekindle.actors.messages.internal.to_supervisor import BackoffElapsed
from rekindle.actors.ports import Receiver, Timer
from rekindle.actors.rules.stop_ladder import BeingStopped, Unkillable
from rekindle.actors.runtime.thread_runtime import RealClock, ThreadRuntime
from rekindle.actors.runtime.timekeeper import HeapTimer, Timekeeper
from rekindle.actors.simulation import Phase
from rekindle.actors.simulation.observer import decided
from rekindle.actors.simulation.scenarios.behaviours import life_of
from rekindle.actors.simulation.scenarios.history import (
    AnyEntry,
    Decided,
    Ended,
    Ordered,
    Spawned,
    SpawnRefused,
    TimerDropped,
    TimerFired,
    TimerSet,
    decoded,
)
from rekindle.actors.simulation.supervisor_life import ScriptedMistakeError, is_stable

from .plan import RealRunPlan, life_document


class Journal:
    """The history of a real run: a file to which every process appends whole lines."""

    def __init__(self, plan: RealRunPlan) -> None:
        self._plan = plan
        self._fd = os.open(
            Path(plan.folder) / "history", os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600
        )

    def now(self) -> float:
        """The time of the scenario, in seconds; 0 until it begins."""
        if self._plan.epoch is None:
            return 0.0
        return (time.monotonic() - self._plan.epoch) * self._plan.speed

    def wall(self, wall_ms: int) -> int:
        """A wall-clock time, scaled so that differences are in scenario time."""
        return round(wall_ms * self._plan.speed)

    def wall_now(self) -> int:
        """The current wall-clock time, scaled likewise."""
        return self.wall(time.time_ns() // 1_000_000)

    def note(self, entry: AnyEntry) -> None:
        """Append an entry; a SIGKILL of this process can cut it off, and no other one."""
        os.write(self._fd, b"\n" + msgspec.json.encode(entry) + b"\n")


def entries_of(written: bytes) -> list[AnyEntry]:
    """The entries of a journal to which other processes may be writing, without those that were cut off."""
    entries: list[AnyEntry] = []
    for line in written[: written.rfind(b"\n") + 1].splitlines():
        with contextlib.suppress(msgspec.DecodeError):
            entries += decoded((line,))
    return entries


class JumpingClock(RealClock):
    """The clocks of the system, with a wall clock that a scenario can set."""

    def __init__(self) -> None:
        self.offset_ms = 0

    def wall_ms(self) -> int:
        """Milliseconds since 1970, shifted by the scenario."""
        return super().wall_ms() + self.offset_ms


class RecorderState(msgspec.Struct, frozen=True, kw_only=True):
    """What a recorder leaves to the one of the program that replaces it."""

    armed: tuple[tuple[Phase, str, int, bool], ...]
    mistakes: dict[str, int]
    clock_offset_ms: int
    generations: dict[str, int]
    living: frozenset[str]
    stable: frozenset[str]


class ActorRecorder:
    """Sees every message before its actor handles it; records it, and injects faults."""

    def __init__(self, plan: RealRunPlan, journal: Journal, reached: Callable[[int], None]) -> None:
        self.clock = JumpingClock()
        self.mistakes: dict[str, int] = {}
        self.refs: dict[str, Receiver] = {}
        self._plan = plan
        self._journal = journal
        self._reached = reached
        self._armed: list[tuple[Phase, str, int, bool]] = []
        self._generations: dict[str, int] = {}
        self._spawned: dict[str, int] = {}
        self._living: set[str] = set()
        self._stable: set[str] = set()
        self._delayed: list[tuple[Phase, str, int, bool]] = []
        """The phases that workers enter in a moment."""
        self._restarts: list[BackoffElapsed] = []
        """The pending restarts."""

    # ── phases and mistakes ──────────────────────────────────────────────────────────────

    def arm(self, phase: Phase, worker: str, number: int, *, deadly: bool) -> None:
        """Report when a worker enters a phase, or kill this process at that moment."""
        self._armed.append((phase, worker, number, deadly))

    def disarm(self) -> None:
        """Report nothing more."""
        self._armed.clear()

    def at(self, phase: Phase, worker: str, in_s: float = 0.0) -> None:
        """A worker is in a phase, or will be in `in_s` seconds."""
        for armed in [each for each in self._armed if each[:2] == (phase, worker)]:
            self._armed.remove(armed)
            if in_s:
                self._delayed.append(armed)
                timer = threading.Timer(in_s, self._fire_delayed, (armed,))
                timer.daemon = True
                timer.start()
            else:
                self._fire(*armed[2:])

    def _fire_delayed(self, armed: tuple[Phase, str, int, bool]) -> None:
        self._delayed.remove(armed)
        self._fire(*armed[2:])

    def _fire(self, number: int, deadly: bool) -> None:
        if deadly:
            # Reported before the kill, so that the scenario learns which move killed the process.
            self._reached(number)
            os.kill(os.getpid(), signal.SIGKILL)
            threading.Event().wait()
        self._reached(number)

    def committed(self, worker: str) -> None:
        """The death of a worker was committed."""
        self.at(Phase.AFTER_COMMIT, worker)

    def tell(self, actor: str, message: object) -> None:
        """Send an actor a message that no other actor would send."""
        self.refs[actor].tell(message)

    def generation(self, worker: str) -> int:
        """The latest generation that was started."""
        return self._generations.get(worker, 0)

    def is_stable(self, worker: str) -> bool:
        """Whether the current generation of a worker would stay healthy."""
        return worker in self._stable

    # ── an upgrade ───────────────────────────────────────────────────────────────────────

    def leave(self) -> RecorderState:
        """End the record of this program; what the one of the next program needs."""
        for restart in tuple(self._restarts):
            self.timer_gone(restart, fired=False)
        return RecorderState(
            armed=(*self._armed, *self._delayed),
            mistakes=self.mistakes,
            clock_offset_ms=self.clock.offset_ms,
            generations=self._generations,
            living=frozenset(self._living),
            stable=frozenset(self._stable),
        )

    def take_over(self, state: RecorderState) -> None:
        """Go on where the former program ended."""
        self._armed += state.armed
        self.mistakes.update(state.mistakes)
        self.clock.offset_ms = state.clock_offset_ms
        self._generations.update(state.generations)
        self._living |= state.living
        self._stable |= state.stable

    # ── messages ─────────────────────────────────────────────────────────────────────────

    def before(self, name: str, actor: Any, message: Any) -> None:
        """An actor is about to handle a message."""
        now = self._journal.now()
        match message:
            case StatusChanged(death=death) if name == "Supervisor" and death is not None:
                self.at(Phase.BEFORE_DECIDE, message.component_id)
            case StartProcess(generation=generation):
                self._prepare(actor._spec.id, generation)
            case StopProcess() if self._armed:
                self.at(Phase.STOP, actor._spec.id)
            case ProcessStarted(component_id=id_, generation=generation, pid=pid) if name == "WorkerProxy":
                self._living.add(id_)
                if self._spawned.get(id_) != generation:  # else a proxy that raised is told again
                    self._spawned[id_] = generation
                    self._journal.note(Spawned(now, id_, generation, pid))
            case SpawnFailed(component_id=id_, generation=generation, error=error) if name == "WorkerProxy":
                self._journal.note(SpawnRefused(now, id_, generation, error))
            case ProcessExited(component_id=id_, generation=generation, exit=exit_) if name == "WorkerProxy":
                self._living.discard(id_)
                by = "supervisor" if isinstance(actor._state, BeingStopped | Unkillable) else "itself"
                self._journal.note(Ended(now, id_, generation, exit_.code, exit_.signal, by))
            case StopWorkers(ids=ids, urgency=urgency) if name == "Supervisor":
                for worker in ids or (None,):
                    self._journal.note(Ordered(now, "stop", worker, urgency=int(urgency)))
            case _:
                pass
        if self.mistakes.get(name):
            self.mistakes[name] -= 1
            raise ScriptedMistakeError("raised by the scenario")

    def _prepare(self, worker: str, generation: int) -> None:
        """Prepare the files of the next generation of a worker, just before it starts."""
        if self._generations.get(worker) == generation:
            return  # ordered before an upgrade, and not begun
        folder = Path(self._plan.folder)
        with (folder / f"{worker}.starts").open("ab") as starts:
            number = starts.tell()
            starts.write(b".")
        life = life_of(self._plan.lives_of(worker), number, self._journal.now())
        self._generations[worker] = generation
        (self._stable.add if is_stable(life) else self._stable.discard)(worker)
        (folder / f"{worker}.orders").touch()
        (folder / f"{worker}.life").write_text(json.dumps(life_document(life, self._plan)))
        program = folder / f"{worker}.python"
        with contextlib.suppress(FileNotFoundError):
            program.unlink()
        if life.cannot_be_spawned is None:
            program.symlink_to(os.path.realpath(sys.executable))
        if self._armed:
            self.at(Phase.SPAWN, worker)

    def decides(self, keep: Persist) -> None:
        """The Supervisor sends decisions to be persisted."""
        for item in keep.items:
            entry = decided(self._journal.now(), item, lambda worker: None)
            if isinstance(entry, Decided):
                entry = msgspec.structs.replace(entry, delay_ms=round(entry.delay_ms * self._plan.speed))
            if entry is not None:
                self._journal.note(entry)

    def rolls_out(self, advanced: RolloutAdvanced) -> None:
        """A rollout takes its next step."""
        if advanced.step == "replace":
            for worker in self._living.intersection(advanced.workers):
                self._journal.note(Ordered(self._journal.now(), "renew", worker))

    def timer_set(self, delay_s: float, message: BackoffElapsed) -> None:
        """A restart is pending."""
        now = self._journal.now()
        due = now + delay_s * self._plan.speed
        self._journal.note(TimerSet(now, message.component_id, message.generation, due))
        self._restarts.append(message)
        self.at(Phase.BACKOFF, message.component_id, delay_s / 2)

    def timer_gone(self, message: BackoffElapsed, *, fired: bool) -> None:
        """A restart is no longer pending."""
        with contextlib.suppress(ValueError):  # fired and cancelled in the same moment
            self._restarts.remove(message)
        kind = TimerFired if fired else TimerDropped
        self._journal.note(kind(self._journal.now(), message.component_id, message.generation))


class _RecordingPersistence:
    """Records each decision of the Supervisor, and forwards it to the persistence actor."""

    def __init__(self, persistence: Receiver, recorder: ActorRecorder) -> None:
        self._persistence = persistence
        self._recorder = recorder

    def tell(self, message: Any) -> None:
        """Record the message, then forward it."""
        if isinstance(message, Persist):
            self._recorder.decides(message)
        elif isinstance(message, RolloutAdvanced):
            self._recorder.rolls_out(message)
        self._persistence.tell(message)


class _RecordingTimer(HeapTimer):
    """The timer of a restart; records when it is cancelled."""

    __slots__ = ("recorder",)

    def __init__(self, receiver: Receiver, message: BackoffElapsed, recorder: ActorRecorder) -> None:
        super().__init__(receiver, message)
        self.recorder = recorder

    def cancel(self) -> None:
        """Cancel it, unless it has fired."""
        message = self.message
        if isinstance(message, BackoffElapsed):
            self.recorder.timer_gone(message, fired=False)
        super().cancel()


class _RestartReceiver:
    """Receives the end of a restart delay, records it and forwards it to the Supervisor."""

    def __init__(self, receiver: Receiver, recorder: ActorRecorder) -> None:
        self.timer: _RecordingTimer | None = None
        self._receiver = receiver
        self._recorder = recorder

    def tell(self, message: Any) -> None:
        """The delay has elapsed."""
        if self.timer is not None:
            self.timer.message = None
        self._recorder.timer_gone(message, fired=True)
        self._receiver.tell(message)


class _RecordingTimers:
    """Timers that record restarts."""

    def __init__(self, timekeeper: Timekeeper, recorder: ActorRecorder) -> None:
        self._timekeeper = timekeeper
        self._recorder = recorder

    def after(self, delay_s: float, receiver: Receiver, message: object) -> Timer:
        """Send the message to the receiver after the delay."""
        if not isinstance(message, BackoffElapsed):
            return self._timekeeper.after(delay_s, receiver, message)
        self._recorder.timer_set(delay_s, message)
        restart = _RestartReceiver(receiver, self._recorder)
        restart.timer = _RecordingTimer(receiver, message, self._recorder)
        inner = self._timekeeper.after(delay_s, restart, message)
        return _TimerPair(inner, restart.timer)


class _TimerPair:
    """A timer, and the one that records its end."""

    def __init__(self, inner: Timer, watched: Timer) -> None:
        self._inner = inner
        self._watched = watched

    def cancel(self) -> None:
        """Cancel both."""
        self._inner.cancel()
        self._watched.cancel()


class RecordingRuntime(ThreadRuntime):
    """Threads and the real clock, with every actor recorded."""

    def __init__(self, recorder: ActorRecorder) -> None:
        super().__init__()
        self._recorder = recorder
        self.clock = recorder.clock
        self.timers = _RecordingTimers(self._timekeeper, recorder)
        self._classes: dict[type[pykka.Actor], type[pykka.Actor]] = {}

    def start(self, actor: Any, /, *args: Any, **kwargs: Any) -> pykka.ActorRef[Any]:
        """Start an actor whose messages are recorded."""
        if actor.__name__ == "Supervisor":
            kwargs["persistence"] = _RecordingPersistence(kwargs["persistence"], self._recorder)
        if actor not in self._classes:
            self._classes[actor] = _recorded(actor, self._recorder)
        ref = super().start(self._classes[actor], *args, **kwargs)
        self._recorder.refs[actor.__name__] = ref
        return ref


def _recorded(actor: Any, recorder: ActorRecorder) -> Any:
    name, original = actor.__name__, actor.handle

    def handle(self: Any, message: Any) -> None:
        recorder.before(name, self, message)
        original(self, message)

    return type(name, (actor,), {"__module__": actor.__module__, "__doc__": actor.__doc__, "handle": handle})
