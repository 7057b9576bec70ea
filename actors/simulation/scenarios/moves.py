"""Pure: what can be done to a system, as data.

Every move has one word, the same in Python and in a scenario file; its first field is the value of that
key: `kill = "worker:tag:0"`, `database = "locked"`, `set_clock = 86400`.
"""

from __future__ import annotations

import signal as signals
from dataclasses import MISSING, dataclass, fields
from enum import StrEnum

from .jobs.job_moves import QUEUE_MOVES, QueueMove

EVERY_WORKER = "*"
"""Means all workers."""


class Phase(StrEnum):
    """A moment in the life of a worker that has no fixed time."""

    BEFORE_DECIDE = "before_decide"
    """The worker has died, and nothing is decided yet."""
    AFTER_COMMIT = "after_commit"
    """Its death was persisted, and no actor has acted on that yet."""
    BACKOFF = "backoff"
    """In the middle of the delay before its restart."""
    SPAWN = "spawn"
    """Its process is being started."""
    STOP = "stop"
    """It was just asked to stop."""


class DatabaseState(StrEnum):
    """The state of the database."""

    LOCKED = "locked"
    GONE = "gone"
    FULL = "full"
    SLOW = "slow"
    BACK = "back"


class StopUrgency(StrEnum):
    """How firmly a stop ends processes."""

    GRACEFUL = "graceful"
    FIRM = "firm"
    KILL = "kill"

    @property
    def level(self) -> int:
        """0, 1 or 2; a firmer stop replaces a gentler one."""
        return tuple(StopUrgency).index(self)


class ActorName(StrEnum):
    """The actors that can be made to raise."""

    SUPERVISOR = "supervisor"
    MONITOR = "monitor"
    RECORDER = "recorder"
    PROXY = "proxy"
    BROKER = "broker"

    @property
    def class_name(self) -> str:
        """The name of its class."""
        return _CLASSES[self]


_CLASSES = {
    ActorName.SUPERVISOR: "Supervisor",
    ActorName.MONITOR: "HealthMonitor",
    ActorName.RECORDER: "PersistenceActor",
    ActorName.PROXY: "WorkerProxy",
    ActorName.BROKER: "Broker",
}


@dataclass(frozen=True, slots=True)
class Kill:
    """Send a worker's process a signal from outside."""

    worker: str
    signal: int = signals.SIGKILL


@dataclass(frozen=True, slots=True)
class Freeze:
    """SIGSTOP a worker, for a while or until it is thawed."""

    worker: str
    for_s: float | None = None


@dataclass(frozen=True, slots=True)
class Thaw:
    """SIGCONT a worker."""

    worker: str


@dataclass(frozen=True, slots=True)
class SlowHeartbeats:
    """Slow a worker's heartbeats down, for a while."""

    worker: str
    every_s: float = 10.0
    for_s: float | None = None


@dataclass(frozen=True, slots=True)
class LoseHeartbeats:
    """Lose a worker's frames, for a while."""

    worker: str
    for_s: float | None = None


@dataclass(frozen=True, slots=True)
class Garbage:
    """Let a worker send lines that are not frames."""

    worker: str
    lines: int = 1


@dataclass(frozen=True, slots=True)
class ProbeFails:
    """Let the probe of a worker's liveness fail, for a while; only in virtual time."""

    worker: str
    for_s: float | None = None


@dataclass(frozen=True, slots=True)
class LateFrame:
    """Deliver a healthy frame of an older incarnation."""

    worker: str
    generations: int = 1
    """How much older."""


@dataclass(frozen=True, slots=True)
class StaleTimer:
    """Deliver timers of older attempts, and of earlier steps of a stop."""

    worker: str
    generations: int = 1


@dataclass(frozen=True, slots=True)
class Database:
    """Make the database locked, gone, full or slow, for a while or until it is back."""

    state: DatabaseState
    for_s: float | None = None
    takes_s: float = 5.0
    """How long a commit takes while it is slow."""


@dataclass(frozen=True, slots=True)
class SetClock:
    """Set the wall clock forward, or back."""

    by_s: float


@dataclass(frozen=True, slots=True)
class HostSleep:
    """Suspend the whole host: supervisor and workers."""

    for_s: float


@dataclass(frozen=True, slots=True)
class ActorRaises:
    """Make an actor raise at the next messages that it receives."""

    actor: ActorName
    times: int = 1


@dataclass(frozen=True, slots=True)
class Pause:
    """An operator pauses a worker, or everything."""

    worker: str = EVERY_WORKER
    for_s: float | None = None


@dataclass(frozen=True, slots=True)
class Resume:
    """An operator ends a pause."""

    worker: str = EVERY_WORKER


@dataclass(frozen=True, slots=True)
class Stop:
    """An operator stops a worker, or everything."""

    worker: str = EVERY_WORKER
    urgency: StopUrgency = StopUrgency.GRACEFUL


@dataclass(frozen=True, slots=True)
class Start:
    """An operator starts a worker, or everything."""

    worker: str = EVERY_WORKER


@dataclass(frozen=True, slots=True)
class Restart:
    """An operator clears a worker's counters and restarts it."""

    worker: str


@dataclass(frozen=True, slots=True)
class RollOut:
    """An operator has a new process ready before the old one stops; only in virtual time."""

    worker: str


@dataclass(frozen=True, slots=True)
class Reset:
    """An operator clears a worker's counters and failure."""

    worker: str


@dataclass(frozen=True, slots=True)
class KillSupervisor:
    """kill -9 the supervisor, and start it again a little later."""

    back_after_s: float = 1.0


@dataclass(frozen=True, slots=True)
class UpgradeSupervisor:
    """Replace the supervisor by another program in the same process; its workers run on."""

    times: int = 1
    """How often in a row."""


Move = (
    Kill
    | Freeze
    | Thaw
    | SlowHeartbeats
    | LoseHeartbeats
    | Garbage
    | ProbeFails
    | LateFrame
    | StaleTimer
    | Database
    | SetClock
    | HostSleep
    | ActorRaises
    | Pause
    | Resume
    | Stop
    | Start
    | Restart
    | RollOut
    | Reset
    | KillSupervisor
    | UpgradeSupervisor
    | QueueMove
)

Touch = Kill | Freeze | Thaw | SlowHeartbeats | LoseHeartbeats | Garbage | ProbeFails
"""Moves on the process of a worker."""

MOVES: dict[str, type[Move]] = {
    "kill": Kill,
    "freeze": Freeze,
    "thaw": Thaw,
    "slow_heartbeats": SlowHeartbeats,
    "lose_heartbeats": LoseHeartbeats,
    "garbage": Garbage,
    "probe_fails": ProbeFails,
    "late_frame": LateFrame,
    "stale_timer": StaleTimer,
    "database": Database,
    "set_clock": SetClock,
    "host_sleep": HostSleep,
    "actor_raises": ActorRaises,
    "pause": Pause,
    "resume": Resume,
    "stop": Stop,
    "start": Start,
    "restart": Restart,
    "roll_out": RollOut,
    "reset": Reset,
    "kill_supervisor": KillSupervisor,
    "upgrade_supervisor": UpgradeSupervisor,
    **QUEUE_MOVES,
}
"""Every move by its word."""

WORDS: dict[type[Move], str] = {move: word for word, move in MOVES.items()}


def worker_of(move: Move) -> str | None:
    """The worker of a move; None for moves on the host, the database, the supervisor or all workers."""
    worker = getattr(move, "worker", None)
    return None if worker == EVERY_WORKER else worker


def in_words(move: Move) -> str:
    """A move in the words of a scenario file: `kill tag, signal 11`."""
    first, *rest = fields(move)
    words = [f"{WORDS[type(move)]} {_shown(getattr(move, first.name))}"]
    words += [
        f"{each.name} {_shown(value)}"
        for each in rest
        if (value := getattr(move, each.name)) != each.default or each.default is MISSING
    ]
    return ", ".join(words)


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
