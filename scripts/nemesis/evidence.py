"""Everything that the checks compare: the truth of the workers and of the attacker, and what Rekindle stored.

Times are seconds on the monotonic clock, which all processes of a machine share, unless a name says
`wall_ms`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Incarnation = tuple[str, int]
"""A worker and its generation."""


@dataclass(frozen=True, kw_only=True)
class Life:
    """One process of a worker, by its own notes."""

    worker: str
    generation: int
    pid: int
    supervisor: int
    began: float
    began_wall_ms: int
    last: float
    last_wall_ms: int
    holder: str = ""
    """The process of the same worker that was alive when this one began."""
    exit: int | None = None
    """The exit code with which it ended itself."""
    signal: int | None = None
    """The signal with which it ended itself."""
    ended: float | None = None
    """When it ended itself."""
    asked: bool = False
    """Whether it ended because it was asked to."""

    @property
    def key(self) -> Incarnation:
        """Its worker and generation."""
        return self.worker, self.generation

    def __str__(self) -> str:
        return f"{self.worker} generation {self.generation} (pid {self.pid})"


@dataclass(frozen=True, kw_only=True)
class Execution:
    """One execution of a job, by the notes of the worker."""

    job: int
    attempt: int
    worker: str
    generation: int
    pid: int
    began: float
    done: float | None = None
    how: str = ""
    holder: str = ""
    """The process that was executing the same job when this execution began."""
    resumed: str | None = None
    """The checkpoint that it was given."""
    saved: str | None = None
    """Its last checkpoint that is known to be stored."""
    unsure: tuple[str, ...] = ()
    """Its later ones, whose storing was not confirmed."""
    last: float = 0.0
    """Its last note: until then it certainly ran."""


@dataclass(frozen=True, kw_only=True)
class Signal:
    """A signal that the attacker sent to a process of a worker."""

    at: float
    worker: str
    generation: int
    pid: int
    number: int


@dataclass(frozen=True, kw_only=True)
class SupervisorRun:
    """One `rekindle run`."""

    pid: int
    began: float
    ended: float
    end: str
    """`killed` or `stopped` by the attacker, `itself` if it ended without either."""
    code: int | None = None
    stop_ordered: float | None = None


@dataclass(frozen=True, kw_only=True)
class Enqueued:
    """A job that the attacker put into a queue; `id` is None if no answer came."""

    key: str
    do: str
    id: int | None
    after: list[int] = field(default_factory=list)
    """The jobs that it comes after."""
    batch: int | None = None
    ends: int | None = None
    """The batch after whose end it runs."""
    expires: float | None = None
    """When it should have begun, at the latest."""


@dataclass(frozen=True, kw_only=True)
class Cancelled:
    """A job that the attacker cancelled, as the answer confirmed; `state` is the job's from then on."""

    id: int
    state: str
    at: float


@dataclass(frozen=True, kw_only=True)
class Outage:
    """A time in which the database, or the supervisor, could do nothing."""

    kind: str
    began: float
    ended: float


@dataclass(frozen=True, kw_only=True)
class DeathRow:
    """A stored death."""

    worker: str
    generation: int
    died_at_wall_ms: int
    cause: str
    exit_code: int | None
    signal: int | None
    action: str

    @property
    def key(self) -> Incarnation:
        """Its worker and generation."""
        return self.worker, self.generation


@dataclass(frozen=True, kw_only=True)
class EventRow:
    """A stored event."""

    id: int
    type: str
    worker: str | None
    at_wall_ms: int = 0
    generation: int | None = None
    pid: int | None = None
    action: str = ""
    restart_count: int | None = None
    first_lost: int | None = None
    last_lost: int | None = None

    @property
    def key(self) -> tuple[str | None, int | None]:
        """Its worker and generation."""
        return self.worker, self.generation


@dataclass(frozen=True, kw_only=True)
class JobRow:
    """A stored job."""

    id: int
    key: str
    do: str
    state: str
    attempts: int
    crash_count: int
    queue: str = "work"
    limit_key: str | None = None
    batch_counts: str | None = None


@dataclass(frozen=True, kw_only=True)
class CrashRow:
    """A stored blame: the worker died while it held the job."""

    job: int
    worker: str
    generation: int
    cause: str

    @property
    def key(self) -> Incarnation:
        """The worker that died."""
        return self.worker, self.generation


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """One run, complete."""

    lives: tuple[Life, ...] = ()
    executions: tuple[Execution, ...] = ()
    signals: tuple[Signal, ...] = ()
    supervisors: tuple[SupervisorRun, ...] = ()
    enqueued: tuple[Enqueued, ...] = ()
    cancelled: tuple[Cancelled, ...] = ()
    outages: tuple[Outage, ...] = ()
    stalls: tuple[Outage, ...] = ()
    """Times in which the supervisor was frozen."""
    deaths: tuple[DeathRow, ...] = ()
    events: tuple[EventRow, ...] = ()
    counters: dict[str, int] = field(default_factory=dict)
    jobs: tuple[JobRow, ...] = ()
    crashes: tuple[CrashRow, ...] = ()
    orphans: tuple[str, ...] = ()
    """Processes that were left after a supervisor had ended."""
    unreached: tuple[str, ...] = ()
    """Workers that did not reach the wanted state after the attack."""
    tracebacks: tuple[str, ...] = ()
    """Tracebacks in the log of the supervisors."""


@dataclass(frozen=True)
class Violation:
    """A broken promise, with the shortest evidence of it."""

    check: str
    text: str
