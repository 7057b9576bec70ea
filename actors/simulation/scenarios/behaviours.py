"""Pure: what the workers of a scenario do.

A `Behaviour` is one life of a worker. Each word is a small function here and a key of the same name in
a scenario file; `|` combines two of them:

    dies_after(3, exit=2)    hangs(after_s=10) | ignores_term()    says_recovering(30)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

from ...deaths.death import Exit, Job
from ...errors import Problem
from ...facts.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """What one incarnation does; by default it is healthy at once and keeps running."""

    dies_after: float | None = None
    """It ends this many seconds after its start, with `exit` or by `signal`."""
    exit: int = 1
    signal: int | None = None
    healthy_after: float | None = 0.0
    """When it first reports that it is healthy, and meets the conditions of its readiness; None is never."""
    hangs_after: float | None = None
    """From then on it sends nothing and ignores requests; SIGTERM still ends it."""
    stops_heartbeating_after: float | None = None
    """From then on it sends no heartbeats, but does everything else."""
    says_recovering: float | None = None
    """It reports `recovering` for this many seconds from its start."""
    cannot_be_spawned: str | None = None
    """The error of the operating system."""
    ignores_term: bool = False
    ignores_request: bool = False
    ignores_kill: bool = False
    """Like a process that waits for a dead disk. Only in virtual time: a real process cannot be made to."""
    spawn_takes: float = 0.0
    """How long its process takes to start. Only in virtual time: a real one takes what it takes."""
    kill_takes: float | None = None
    """SIGKILL ends it this much later, like a process that waits for a slow disk. Only in virtual time."""
    stops_after: float = 0.0
    """How long it takes to end after a request."""
    drains_in_s: float = 0.0
    """How long it takes to finish its work after it was told to take no more."""
    needs_database: float | None = None
    """It needs the database for this many seconds from its start, and dies without it."""
    heartbeat: float | None = None
    """The interval of its heartbeats; None is that of its health policy, infinity is one heartbeat only."""
    job: Job | None = None
    """Its current job, unless it is idle."""
    shows_stacks: bool = False
    """Whether it can write its stack traces."""
    usage: Callable[[float], Usage] | None = None
    """Its resource usage by its age in seconds; None: very little. Only in virtual time."""
    until: float | None = None
    """Every incarnation that starts before this time of the scenario has this life."""

    def __or__(self, other: Behaviour) -> Behaviour:
        """Both combined; where both set a field, the right one wins."""
        set_there = {
            each.name: getattr(other, each.name)
            for each in fields(other)
            if getattr(other, each.name) != each.default
        }
        return replace(self, **set_there)

    @property
    def how(self) -> Exit:
        """How it ends when it ends by itself."""
        return Exit(signal=self.signal) if self.signal is not None else Exit(code=self.exit)

    def problems(self) -> list[Problem]:
        """The problems of its fields."""
        return [
            Problem(each.name, "must not be negative", value)
            for each in fields(self)
            if isinstance(value := getattr(self, each.name), int | float) and value < 0
        ]


def runs() -> Behaviour:
    """Healthy from the start to the end."""
    return Behaviour()


def dies_after(seconds: float, *, exit: int = 1, signal: int | None = None) -> Behaviour:
    """Ends this many seconds after its start, with an exit code or by a signal."""
    return Behaviour(dies_after=seconds, exit=exit, signal=signal)


def exits(code: int = 0, *, after_s: float = 0.0) -> Behaviour:
    """Ends by itself with this code."""
    return Behaviour(dies_after=after_s, exit=code)


def hangs(*, after_s: float = 0.0) -> Behaviour:
    """Keeps running, but sends nothing and ignores requests."""
    return Behaviour(hangs_after=after_s)


def stops_heartbeating(at: float) -> Behaviour:
    """Keeps running, but sends no more heartbeats."""
    return Behaviour(stops_heartbeating_after=at)


def says_recovering(for_s: float) -> Behaviour:
    """Reports `recovering` for this long, then `healthy`."""
    return Behaviour(says_recovering=for_s)


def cannot_be_spawned(error: str = "No such file or directory") -> Behaviour:
    """Cannot be started."""
    return Behaviour(cannot_be_spawned=error)


def never_healthy() -> Behaviour:
    """Starts, and never reports that it is healthy."""
    return Behaviour(healthy_after=None)


def ignores_term() -> Behaviour:
    """Neither a request nor SIGTERM ends it."""
    return Behaviour(ignores_term=True, ignores_request=True)


def needs_database(until: float) -> Behaviour:
    """Dies if the database is unavailable in its first seconds."""
    return Behaviour(needs_database=until)


def life_of(lives: Sequence[Behaviour], start: int, now: float) -> Behaviour:
    """The life of the start with this number, counted from 0, at this time of the scenario.

    The lives follow each other, and the last one repeats; a life with `until` applies to every start
    before then, and to none after.
    """
    open_lives = [life for life in lives if life.until is None or now < life.until]
    if not open_lives:
        return Behaviour()
    if open_lives[0].until is not None:
        return open_lives[0]
    return open_lives[min(start, len(open_lives) - 1)]
