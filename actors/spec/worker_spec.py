"""What a host declares about its workers; checked when it is constructed.

A `WorkerSpec` names what to run (`Command` or `PythonCall`) and the policies that apply to it.
Everything here is immutable and compares by value. `presets` has the four ready-made
sets of policies; `WorkerSpec.from_preset` takes one and overrides single fields.
"""

from __future__ import annotations

import re
import signal as signals
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from types import MappingProxyType

from ..deaths.death import signal_name, signal_number
from ..errors import Problem, SpecError
from .breaker_policy import BreakerPolicy
from .job_policy import JobPolicy
from .resource_limits import RecyclePolicy, ResourceLimits
from .validation import (
    SHORTEST_S,
    Policy,
    check,
    convert_words,
    exceeds,
    field_problems,
    refuse,
    seconds,
    setting,
)
from .work_release import ReleasePolicy

COMPONENT_ID = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
NOT_A_SIGNAL = "is not a signal; use a name such as SIGTERM or a number"
PYTHON_TARGET = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


class RestartOn(StrEnum):
    """Which exits lead to a restart."""

    ALWAYS = "always"
    ON_FAILURE = "on_failure"
    NEVER = "never"


class WindowMode(StrEnum):
    """How the window of the short-term limit moves."""

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
class RestartPolicy(Policy):
    """When a dead worker is restarted, after which delay, and when to give up.

    The defaults are the preset `steady`. None means no limit.
    """

    enabled: bool = setting(True, "Whether a dead worker is restarted at all.")
    restart_on: RestartOn = setting(RestartOn.ALWAYS, "Which exits lead to a restart.")
    max_in_window: int | None = setting(5, "How many restarts are allowed within window_s.", least=1)
    window_s: float = seconds(300.0, "The window of max_in_window, in seconds.", least=SHORTEST_S)
    window_mode: WindowMode = setting(
        WindowMode.SINCE_LAST_RESTART,
        "Whether the window slides, or starts again when no restart happened for window_s.",
    )
    max_lifetime: int | None = setting(20, "How many restarts are allowed in all, until a reset.", least=1)
    max_consecutive: int | None = setting(None, "How many restarts are allowed in a row.", least=1)
    initial_delay_s: float = seconds(1.0, "The delay before the first restart of a streak, in seconds.")
    multiplier: float = setting(2.0, "The factor by which each further delay grows.", least=1)
    max_delay_s: float = seconds(60.0, "The longest delay, in seconds.")
    min_delay_s: float = seconds(1.0, "The shortest delay, in seconds; it wins over max_delay_s.")
    immediate_first: bool = setting(False, "Whether the first restart of a streak has no delay.")
    jitter: float = setting(
        0.0, "The share of a delay, 0 to 1, that may be taken off at random.", least=0, most=1
    )
    reset_after_healthy_s: float | None = seconds(
        None, "After this many seconds of health the streak is cleared, but not the lifetime count."
    )
    on_exhausted: OnExhausted = setting(OnExhausted.MARK_FAILED, "What happens when a limit is reached.")
    give_up_exit_codes: tuple[int, ...] = setting(
        (), "Exit codes after which a restart is pointless: the worker is failed at once."
    )
    clear_failed_on_change: bool = setting(
        False, "Whether a failed worker is tried again once its code or configuration has changed."
    )

    def conflicts(self, wrong: Collection[str]) -> Iterator[Problem]:
        """The delays that contradict each other."""
        if exceeds(self, "initial_delay_s", "max_delay_s"):
            reason = f"must not be below initial_delay_s ({self.initial_delay_s})"
            yield Problem("max_delay_s", reason, self.max_delay_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthPolicy(Policy):
    """How long a worker that reports its health may stay silent.

    The defaults are the preset `steady`. With `staleness_s = None` a worker needs no heartbeats
    after its first one; with `recovery_*_s = None` it gets no recovery time.
    """

    startup_timeout_s: float = seconds(
        60.0, "How long a worker may take from its start to its first healthy frame.", least=SHORTEST_S
    )
    staleness_s: float | None = seconds(
        5.0, "Silence of this many seconds is a miss; none: heartbeats are not required.", least=SHORTEST_S
    )
    max_misses: int = setting(3, "How many misses in a row make a worker dead.", least=1)
    heartbeat_interval_s: float = seconds(
        2.0, "How often a worker is asked to send a frame, in seconds.", least=SHORTEST_S
    )
    recovery_min_s: float | None = seconds(5.0, "The shortest recovery time that a worker is given.")
    recovery_max_s: float | None = seconds(
        120.0, "The longest recovery time that a worker is given.", least=SHORTEST_S
    )
    progress_timeout_s: float | None = seconds(
        None,
        "How long the work of a live worker may make no progress; none: progress is not checked.",
        least=SHORTEST_S,
    )
    max_bad_frames: int = setting(
        100, "A worker that sends more invalid frames than this is stopped.", least=1
    )

    def conflicts(self, wrong: Collection[str]) -> Iterator[Problem]:
        """The times that contradict each other."""
        if (self.recovery_min_s is None) != (self.recovery_max_s is None):
            reason = "must be set together with recovery_max_s, or not at all"
            yield Problem("recovery_min_s", reason, self.recovery_min_s)
        elif exceeds(self, "recovery_min_s", "recovery_max_s"):
            reason = f"must not exceed recovery_max_s ({self.recovery_max_s})"
            yield Problem("recovery_min_s", reason, self.recovery_min_s)
        if exceeds(self, "heartbeat_interval_s", "staleness_s"):
            reason = f"must not exceed staleness_s ({self.staleness_s})"
            yield Problem("heartbeat_interval_s", reason, self.heartbeat_interval_s)
        if exceeds(self, "heartbeat_interval_s", "progress_timeout_s"):
            reason = (
                f"must not be below heartbeat_interval_s ({self.heartbeat_interval_s}): "
                "progress is reported with the heartbeats"
            )
            yield Problem("progress_timeout_s", reason, self.progress_timeout_s)

    def warnings(self) -> Iterator[Problem]:
        """What is allowed but unwise."""
        if self.staleness_s is not None and self.heartbeat_interval_s > self.staleness_s / 2:
            reason = f"is more than half of staleness_s ({self.staleness_s}): one late frame counts as a miss"
            yield Problem("heartbeat_interval_s", reason, self.heartbeat_interval_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class StopPolicy(Policy):
    """The stop ladder: request, SIGTERM, SIGKILL, and how long to wait after each step.

    A plain command cannot be asked. A graceful stop begins with SIGTERM and waits `ask_s` after
    it; `term_s` is not used then.
    """

    signal: int | str = setting(
        "SIGTERM", "The signal that is sent instead of SIGTERM, by name or number: SIGINT, INT or 2."
    )
    ask_s: float = seconds(
        10.0, "How long to wait after the request to stop; for a plain command: after SIGTERM."
    )
    term_s: float = seconds(
        2.0, "How long to wait after SIGTERM, where SIGTERM follows a request or the worker is unresponsive."
    )
    kill_s: float = seconds(1.0, "How long to wait after SIGKILL.")
    last_s: float = seconds(
        0.5, "How much longer to wait before a process that survived SIGKILL is reported as unkillable."
    )

    def __post_init__(self) -> None:
        check(self)
        name = signal_name(self.signal_number)
        if signal_number(name) is not None:  # real-time signals have numbers only
            object.__setattr__(self, "signal", name)

    @property
    def signal_number(self) -> int:
        """The number of the signal."""
        number = signal_number(self.signal)
        assert number is not None
        return number

    @property
    def total_s(self) -> float:
        """How long a stop may take at most, with every step of the ladder."""
        return self.ask_s + self.term_s + self.kill_s + self.last_s

    def conflicts(self, wrong: Collection[str]) -> Iterator[Problem]:
        """A signal that does not exist, or that does not end a process."""
        if "signal" in wrong:
            return
        number = signal_number(self.signal)
        if number is None:
            yield Problem("signal", NOT_A_SIGNAL, self.signal)
        elif number == signals.SIGSTOP:
            reason = "only suspends a process; use a signal that ends it, such as SIGTERM"
            yield Problem("signal", reason, self.signal)


@dataclass(frozen=True, slots=True)
class Command:
    """A program with its arguments; never a shell string.

    With `reports_health` the program writes health frames to the descriptor that it is given.
    Without it, the program is healthy while it runs.
    """

    argv: tuple[str, ...]
    reports_health: bool = setting(False, "Whether the command writes health frames.")
    pdeathsig: bool = setting(
        False, "Whether the kernel kills the command when its supervisor dies, through a small shim."
    )

    def __post_init__(self) -> None:
        convert_words(self)

    def problems(self) -> Iterator[Problem]:
        """What is wrong with this command."""
        if isinstance(self.argv, str):
            yield Problem("argv", "must be a list of words, not a shell string")
        elif wrong := tuple(field_problems(self)):
            yield from wrong
        elif not self.argv or not self.argv[0]:
            yield Problem("argv", "does not name a program")
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
            yield Problem("target", "must have the form 'package.module:function'", self.target)


def command(*argv: str, reports_health: bool = False, pdeathsig: bool = False) -> Command:
    """A program and its arguments, as separate words."""
    return Command(tuple(argv), reports_health, pdeathsig)


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """One worker: its id, what it runs, and the policies it lives under."""

    id: str
    run: Command | PythonCall
    restart: RestartPolicy = setting(None)
    health: HealthPolicy = setting(None)
    stop: StopPolicy = setting(None)
    pause_mode: PauseMode = setting(PauseMode.STOP, "What a pause does to the process.")
    jobs: JobPolicy | None = setting(factory=JobPolicy)
    limits: ResourceLimits | None = setting(None)
    recycle: RecyclePolicy | None = setting(None)
    breaker: BreakerPolicy | None = None
    """Restarts of all workers with the same breaker are held while their dependency is unavailable."""
    release: ReleasePolicy | None = setting(None)
    group: str = ""
    """The name of the group of interchangeable workers that it belongs to; empty for none."""
    env: Mapping[str, str] = setting(
        description="The environment variables of the worker.", factory=lambda: MappingProxyType({})
    )
    inherit_env: tuple[str, ...] = setting(
        (), "Names of further variables to take over from the supervisor's environment."
    )
    cwd: str | None = setting(None, "The working directory; in a file, relative to that file.")
    user: str | None = setting(None, "The user that the process runs as; only root may set it.")
    after: tuple[str, ...] = ()
    """Ids of workers that must be healthy before this one starts; they are stopped after it."""

    def __post_init__(self) -> None:
        # An explicit None must never surface later, when a crash is being handled.
        for name, default in (("restart", RestartPolicy), ("health", HealthPolicy), ("stop", StopPolicy)):
            if getattr(self, name) is None:
                object.__setattr__(self, name, default())
        if isinstance(self.env, Mapping):
            object.__setattr__(self, "env", MappingProxyType(dict(self.env)))
        convert_words(self)
        refuse(self.id, self.problems())

    def problems(self) -> Iterator[Problem]:
        """What is wrong with this spec, field by field."""
        wrong = {problem.field: problem for problem in field_problems(self)}
        yield from wrong.values()
        if "id" not in wrong and not COMPONENT_ID.fullmatch(self.id):
            yield Problem("id", f"must match {COMPONENT_ID.pattern}", self.id)
        if "run" not in wrong:
            yield from (replace(problem, field="run") for problem in self.run.problems())
        if "env" not in wrong:
            yield from _environment_problems(self.env)
        if "cwd" not in wrong and self.cwd is not None and (not self.cwd or "\0" in self.cwd):
            yield Problem("cwd", "is not a path", self.cwd)
        if "user" not in wrong and self.user is not None and (not self.user or "\0" in self.user):
            yield Problem("user", "is not a user name", self.user)
        if not {"run", "jobs"} & wrong.keys() and self.serves and not self.run.reports_health:
            reason = "require reports_health = true (the queue address is sent over the health channel)"
            yield Problem("jobs.queues", reason)
        if "after" not in wrong and self.id in self.after:
            yield Problem("after", "names the worker itself")

    @property
    def serves(self) -> tuple[str, ...]:
        """The queues that the worker takes jobs from; most workers have none."""
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
            raise SpecError(str(id), [Problem("preset", f"must be one of {known}", preset)])
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
    """The queues that at least one of these workers serves, sorted by name."""
    return tuple(sorted({queue for spec in specs for queue in spec.serves}))


RESERVED = frozenset(
    f"REKINDLE_{name}"
    for name in (
        "FD", "GENERATION", "HEARTBEAT_S", "JOBS", "LAST_WORDS", "PATH", "PYTHONPATH", "SUPERVISOR_PID",
        "SYSTEM", "WORKER",
    )
)  # fmt: skip
"""Variables that identify a worker. A supervisor that is a worker itself does not pass its own on."""


def _environment_problems(env: Mapping[str, str]) -> Iterator[Problem]:
    for name, value in env.items():
        if name in RESERVED:
            yield Problem("env", f"{name} is reserved: Rekindle sets it for the worker")
        if not name or "=" in name or "\0" in name or "\0" in value:
            yield Problem("env", f"{name!r:.80} is not valid in an environment")
