"""What a host declares about its workers; checked when it is constructed.

A `WorkerSpec` says what to run (`Command` or `PythonCall`) and under which policies.
Everything here is immutable and compares by value. `presets` has the four ready-made
sets of policies; `WorkerSpec.from_preset` takes one and overrides single fields.
"""

from __future__ import annotations

import re
import signal as signals
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from types import MappingProxyType

from ..deaths.death import signal_name, signal_number
from ..errors import Problem, SpecError
from .breaker_policy import BreakerPolicy
from .job_policy import JobPolicy
from .resource_limits import RecyclePolicy, ResourceLimits
from .validation import (
    SHORTEST_S,
    at_least,
    coerce,
    durations,
    exceeds,
    mistyped,
    refuse,
    shares,
)
from .work_release import ReleasePolicy

COMPONENT_ID = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
PYTHON_TARGET = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


class RestartOn(StrEnum):
    """Which exits lead to a restart."""

    ALWAYS = "always"
    ON_FAILURE = "on_failure"
    NEVER = "never"


class WindowMode(StrEnum):
    """How the short-term limit counts."""

    SINCE_LAST_RESTART = "since_last_restart"
    SLIDING = "sliding"


class OnExhausted(StrEnum):
    """What happens when a limit is reached."""

    MARK_FAILED = "mark_failed"
    NOTIFY_ONLY = "notify_only"


class PauseMode(StrEnum):
    """What a pause does to the process."""

    STOP = "stop"
    IDLE = "idle"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPolicy:
    """When a dead worker is started again, how long after, and when to give up.

    The defaults are the preset `steady`. A limit of None is no limit.
    """

    enabled: bool = True
    restart_on: RestartOn = RestartOn.ALWAYS
    max_in_window: int | None = 5
    window_s: float = 300.0
    window_mode: WindowMode = WindowMode.SINCE_LAST_RESTART
    max_lifetime: int | None = 20
    max_consecutive: int | None = None
    initial_delay_s: float = 1.0
    multiplier: float = 2.0
    max_delay_s: float = 60.0
    min_delay_s: float = 1.0
    """No delay is shorter than this one."""
    immediate_first: bool = False
    """The first restart of a streak waits for nothing."""
    jitter: float = 0.0
    """The share of a delay, 0 to 1, that chance may take off it."""
    reset_after_healthy_s: float | None = None
    """Health sustained for this long clears the streak (never the lifetime count)."""
    on_exhausted: OnExhausted = OnExhausted.MARK_FAILED
    give_up_exit_codes: tuple[int, ...] = ()
    """Exit codes after which a restart is pointless: failed at once."""
    clear_failed_on_change: bool = False
    """Given up for that version only: one whose code or configuration changed is tried afresh."""

    def __post_init__(self) -> None:
        coerce(self)
        refuse("policy", self.problems())

    def problems(self) -> Iterator[Problem]:
        """What is wrong with this policy, field by field."""
        yield from mistyped(self)
        yield from durations(self, "initial_delay_s", "max_delay_s", "min_delay_s", "reset_after_healthy_s")
        yield from durations(self, "window_s", least=SHORTEST_S)
        yield from at_least(1, self, "max_in_window", "max_lifetime", "max_consecutive", "multiplier")
        yield from shares(self, "jitter")
        if exceeds(self, "initial_delay_s", "max_delay_s"):
            yield Problem(
                "max_delay_s",
                f"must not be below initial_delay_s ({self.initial_delay_s}), is {self.max_delay_s}",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthPolicy:
    """How long silence is tolerated. The defaults are the preset `steady`.

    `staleness_s = None` asks for no heartbeats after the first one; `recovery_*_s = None`
    grants no recovery time.
    """

    startup_timeout_s: float = 60.0
    staleness_s: float | None = 5.0
    max_misses: int = 3
    heartbeat_interval_s: float = 2.0
    """How often a worker is told to send its frames."""
    recovery_min_s: float | None = 5.0
    recovery_max_s: float | None = 120.0
    progress_timeout_s: float | None = None
    """How long the work of a worker may not move, however alive it is; None does not ask."""
    max_bad_frames: int = 100
    """A worker that sends more frames than this that cannot be understood is ended."""

    def __post_init__(self) -> None:
        coerce(self)
        refuse("policy", self.problems())

    def problems(self) -> Iterator[Problem]:
        """What is wrong with this policy, field by field."""
        yield from mistyped(self)
        yield from durations(
            self,
            "startup_timeout_s",
            "staleness_s",
            "heartbeat_interval_s",
            "recovery_max_s",
            "progress_timeout_s",
            least=SHORTEST_S,
        )
        yield from durations(self, "recovery_min_s")
        yield from at_least(1, self, "max_misses", "max_bad_frames")
        if (self.recovery_min_s is None) != (self.recovery_max_s is None):
            yield Problem("recovery_min_s", "is set together with recovery_max_s, or not at all")
        elif exceeds(self, "recovery_min_s", "recovery_max_s"):
            yield Problem("recovery_min_s", f"must not exceed recovery_max_s ({self.recovery_max_s})")
        if exceeds(self, "heartbeat_interval_s", "staleness_s"):
            yield Problem(
                "heartbeat_interval_s",
                f"must not exceed staleness_s ({self.staleness_s}), is {self.heartbeat_interval_s}",
            )

        if exceeds(self, "heartbeat_interval_s", "progress_timeout_s"):
            yield Problem(
                "progress_timeout_s",
                f"must not be below heartbeat_interval_s ({self.heartbeat_interval_s}): "
                "marks of progress come with the heartbeats",
            )

    def warnings(self) -> Iterator[Problem]:
        """What is allowed but unwise."""
        if self.staleness_s is not None and self.heartbeat_interval_s > self.staleness_s / 2:
            yield Problem(
                "heartbeat_interval_s",
                f"is more than half of staleness_s ({self.staleness_s}): one late frame looks like a miss",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class StopPolicy:
    """The stop ladder: ask, then SIGTERM, then SIGKILL, and how long each step waits."""

    signal: int | str = "SIGTERM"
    """What is sent instead of SIGTERM: SIGINT, INT or 2. It is kept by its name."""
    ask_s: float = 10.0
    """How long a worker may take after it was asked (a plain command: after SIGTERM)."""
    term_s: float = 2.0
    kill_s: float = 1.0
    last_s: float = 0.5
    """After this a process that survived SIGKILL is reported as unkillable."""

    def __post_init__(self) -> None:
        coerce(self)
        refuse("policy", self.problems())
        name = signal_name(self.signal_number)
        if signal_number(name) is not None:  # those for real time are numbers only
            object.__setattr__(self, "signal", name)

    @property
    def signal_number(self) -> int:
        """The signal as the system knows it."""
        number = signal_number(self.signal)
        assert number is not None
        return number

    def problems(self) -> Iterator[Problem]:
        """What is wrong with this policy, field by field."""
        yield from mistyped(self)
        yield from durations(self, "ask_s", "term_s", "kill_s", "last_s")
        if isinstance(self.signal, bool) or not isinstance(self.signal, int | str):
            return
        number = signal_number(self.signal)
        if number is None:
            yield Problem("signal", f"is no signal (SIGTERM, INT and 2 are), is {self.signal!r}")
        elif number == signals.SIGSTOP:
            yield Problem("signal", f"must not be one that only halts a process, is {self.signal!r}")


@dataclass(frozen=True, slots=True)
class Command:
    """A program with its arguments; never a shell string.

    `reports_health` says that the program writes health frames to the descriptor that it
    is given. One that does not is healthy for as long as it runs.
    """

    argv: tuple[str, ...]
    reports_health: bool = False
    pdeathsig: bool = False
    """Also have the kernel kill the program with its supervisor, by way of a small shim."""

    def __post_init__(self) -> None:
        coerce(self)

    def problems(self) -> Iterator[Problem]:
        """What is wrong with this command."""
        if isinstance(self.argv, str):
            yield Problem("argv", "is a list of words, never a shell string")
        elif wrong := tuple(mistyped(self)):
            yield from wrong
        elif not self.argv or not self.argv[0]:
            yield Problem("argv", "names no program")
        elif any("\0" in word for word in self.argv):
            yield Problem("argv", "contains a NUL character")


@dataclass(frozen=True, slots=True)
class PythonCall:
    """An importable function, `"package.module:function"`, run by `rekindle.worker.run`."""

    target: str

    @property
    def reports_health(self) -> bool:
        """The runner sends heartbeats by itself."""
        return True

    def problems(self) -> Iterator[Problem]:
        """What is wrong with this target."""
        if not isinstance(self.target, str) or not PYTHON_TARGET.fullmatch(self.target):
            yield Problem("target", f"must look like 'package.module:function', is {self.target!r:.80}")


def command(*argv: str, reports_health: bool = False, pdeathsig: bool = False) -> Command:
    """A program and its arguments, as separate words."""
    return Command(tuple(argv), reports_health, pdeathsig)


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """One worker: its id, what it runs, and the policies it lives under."""

    id: str
    run: Command | PythonCall
    restart: RestartPolicy = None  # type: ignore[assignment]  # None stands for the default
    health: HealthPolicy = None  # type: ignore[assignment]
    stop: StopPolicy = None  # type: ignore[assignment]
    pause_mode: PauseMode = PauseMode.STOP
    jobs: JobPolicy | None = field(default_factory=JobPolicy)
    limits: ResourceLimits | None = None
    recycle: RecyclePolicy | None = None
    breaker: BreakerPolicy | None = None
    """Workers that name the same one are held back together when what they need is away."""
    release: ReleasePolicy | None = None
    """What is done about the work item of a worker that died."""
    group: str = ""
    """The name of the like workers that stand in for each other, if there are any."""
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    inherit_env: tuple[str, ...] = ()
    """Names of further variables that are handed down from the supervisor."""
    cwd: str | None = None
    user: str | None = None
    """Whom the process runs as; only root may say so."""
    after: tuple[str, ...] = ()
    """Ids of workers that must be healthy before this one is started; stopped after it."""

    def __post_init__(self) -> None:
        # An explicit None must never surface later, when a crash is being handled.
        for name, default in (("restart", RestartPolicy), ("health", HealthPolicy), ("stop", StopPolicy)):
            if getattr(self, name) is None:
                object.__setattr__(self, name, default())
        if isinstance(self.env, Mapping):
            object.__setattr__(self, "env", MappingProxyType(dict(self.env)))
        coerce(self)
        refuse(self.id, self.problems())

    def problems(self) -> Iterator[Problem]:
        """What is wrong with this spec, field by field."""
        wrong = {problem.field: problem for problem in mistyped(self)}
        yield from wrong.values()
        if "id" not in wrong and not COMPONENT_ID.fullmatch(self.id):
            yield Problem("id", f"must match {COMPONENT_ID.pattern}, is {self.id[:80]!r}")
        if "run" not in wrong:
            yield from (Problem("run", problem.reason) for problem in self.run.problems())
        if "env" not in wrong:
            yield from _environment_problems(self.env)
        if "cwd" not in wrong and self.cwd is not None and (not self.cwd or "\0" in self.cwd):
            yield Problem("cwd", f"is no directory: {self.cwd!r:.80}")
        if "user" not in wrong and self.user is not None and (not self.user or "\0" in self.user):
            yield Problem("user", f"is no user's name: {self.user!r:.80}")
        if not {"run", "jobs"} & wrong.keys() and self.serves and not self.run.reports_health:
            yield Problem("jobs.queues", "need a command that reports health: their address comes that way")
        if "after" not in wrong and self.id in self.after:
            yield Problem("after", "names the worker itself")

    @property
    def serves(self) -> tuple[str, ...]:
        """The queues that it takes jobs from; most workers have none."""
        return () if self.jobs is None else self.jobs.queues

    @classmethod
    def from_preset(
        cls,
        id: str,
        run: Command | PythonCall,
        preset: str = "steady",
        *,
        restart: Mapping[str, object] | None = None,
        health: Mapping[str, object] | None = None,
        stop: Mapping[str, object] | None = None,
        **others: object,
    ) -> WorkerSpec:
        """A spec under a named preset, with single fields overridden."""
        from .presets import PRESETS, overridden

        if preset not in PRESETS:
            known = ", ".join(PRESETS)
            raise SpecError(str(id), [Problem("preset", f"{preset!r} is none of {known}")])
        chosen = PRESETS[preset]
        problems: list[Problem] = []
        settings: dict[str, object] = {
            "restart": overridden("restart", chosen.restart, restart, problems),
            "health": overridden("health", chosen.health, health, problems),
            "stop": overridden("stop", StopPolicy(), stop, problems),
            "pause_mode": chosen.pause_mode,
            "jobs": chosen.jobs,
            "limits": chosen.limits,
        }
        unknown = sorted(others.keys() - {each.name for each in fields(cls)})
        problems += [Problem(name, "is not a setting of a worker") for name in unknown]
        if isinstance(jobs := others.get("jobs"), Mapping):
            others["jobs"] = overridden("jobs", chosen.jobs or JobPolicy(), jobs, problems)
        settings |= {name: value for name, value in others.items() if name not in unknown}
        try:
            spec = cls(id, run, **settings)  # type: ignore[arg-type]
        except SpecError as error:
            raise SpecError(str(id), [*problems, *error.problems]) from None
        refuse(id, problems)
        return spec


def served_by(specs: Iterable[WorkerSpec]) -> tuple[str, ...]:
    """The queues that some of these serve, by name."""
    return tuple(sorted({queue for spec in specs for queue in spec.serves}))


RESERVED = frozenset(
    f"REKINDLE_{name}"
    for name in (
        "FD", "GENERATION", "HEARTBEAT_S", "JOBS", "LAST_WORDS", "PATH", "PYTHONPATH", "SUPERVISOR_PID",
        "SYSTEM", "WORKER",
    )
)  # fmt: skip
"""What tells a worker who it is. A supervisor that is somebody's worker itself hands none of it down."""


def _environment_problems(env: Mapping[str, str]) -> Iterator[Problem]:
    for name, value in env.items():
        if name in RESERVED:
            yield Problem("env", f"{name} is what Rekindle tells the worker")
        if not name or "=" in name or "\0" in name or "\0" in value:
            yield Problem("env", f"{name!r:.80} cannot stand in an environment")
