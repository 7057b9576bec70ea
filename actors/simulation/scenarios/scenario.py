"""Pure: a scenario: the workers, the moves made on them and when, and what is expected.

    Scenario("crash loop", lasts_s=400).worker("tag", dies_after(3)).expect(reaches("tag", "failed", by=120))
    scenario.at(10).kill("tag").at(20, 30).freeze("tag", for_s=5).during("backoff", "tag").stop("tag")

Everything is immutable; every call returns a new scenario. A scenario file uses the same words.
"""

from __future__ import annotations

import signal as signals
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from ...errors import Problem, RekindleError, SpecError
from ...messages.shapes import field_names
from ...spec.deployment.rollout_policy import RolloutPolicy
from ...spec.group_order import arranged
from ...spec.policies.alive_policy import AlivePolicy
from ...spec.policies.breaker_policy import BreakerPolicy
from ...spec.policies.group import Group
from ...spec.policies.ready_policy import ReadyPolicy
from ...spec.policies.resource_limits import RecyclePolicy
from ...spec.policies.schedule import SchedulePolicy
from ...spec.probe import CommandProbe, HttpProbe, TcpProbe
from ...spec.program import Command, PythonCall
from ...spec.start_order import check_order
from ...spec.worker_spec import WorkerSpec, served_by
from . import moves
from .behaviours import Behaviour
from .expectations import Expectation
from .jobs.job_moves import QUEUE_MOVES, Enqueue
from .moves import EVERY_WORKER, MOVES, Move, Phase, worker_of

LONGEST_S = 366 * 86400.0

NAMED_WORDS = (*QUEUE_MOVES, "probe_fails", "hasten", "upgrade_supervisor", "roll_out")
"""Words that a seed chooses only if the scenario names them; `hasten` is a stop that becomes firmer."""
RANDOM_WORDS = tuple(word for word in MOVES if word not in ("thaw", "resume", "start", *NAMED_WORDS))
"""The words that a seed may choose; what it freezes, pauses or stops, it also thaws, resumes or starts."""


class ScenarioError(RekindleError, ValueError):
    """A scenario is invalid; all problems are listed."""

    def __init__(self, name: str, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        listed = "; ".join(str(problem) for problem in self.problems)
        super().__init__(f"scenario {name!r}: {listed}")


@dataclass(frozen=True, slots=True)
class Role:
    """One worker of a scenario: its policies, and what its incarnations do, one after the other."""

    spec: WorkerSpec
    lives: tuple[Behaviour, ...] = (Behaviour(),)

    @property
    def id(self) -> str:
        """The worker's id."""
        return self.spec.id


@dataclass(frozen=True, slots=True)
class Planned:
    """A move and its moment: at a time, between two times, or in a phase after them."""

    move: Move
    earliest_s: float = 0.0
    latest_s: float | None = None
    """None: exactly at the earliest."""
    during: Phase | None = None
    of: str | None = None
    """The worker whose phase it is."""


@dataclass(frozen=True, slots=True)
class Step:
    """One move at its moment; its number names it in reports and in `--only`."""

    number: int
    at: float
    move: Move
    during: Phase | None = None
    of: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chance:
    """Moves that the seed chooses."""

    moves: int
    from_s: float = 0.0
    until_s: float | None = None
    """None: until the scenario ends."""
    words: tuple[str, ...] = RANDOM_WORDS
    workers: tuple[str, ...] = ()
    """Empty: all."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """The workers, the moves made on them and when, the expectations, and the duration."""

    name: str
    lasts_s: float = 300.0
    roles: tuple[Role, ...] = ()
    plan: tuple[Planned, ...] = ()
    chance: tuple[Chance, ...] = ()
    expected: tuple[Expectation, ...] = ()
    max_concurrent_starts: int | None = None
    about: str = field(default="", compare=False)
    speed: float = field(default=10.0, compare=False)
    """How many seconds of the scenario pass in one real second, by default."""

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the workers, in order."""
        return tuple(role.id for role in self.roles)

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues that its workers serve."""
        return served_by(role.spec for role in self.roles if role.spec.serves)

    def worker(
        self,
        id: str,
        *lives: Behaviour,
        preset: str = "steady",
        reports_health: bool = True,
        restart: Mapping[str, object] | None = None,
        health: Mapping[str, object] | None = None,
        stop: Mapping[str, object] | None = None,
        breaker: BreakerPolicy | Mapping[str, object] | None = None,
        **others: object,
    ) -> Scenario:
        """With one more worker, whose incarnations have these lives one after the other.

        Raises:
            SpecError: its policies are invalid.
        """
        run = PythonCall("scenario:worker") if reports_health else Command(("scenario",))
        # Scenarios do not cover resource usage, and sampling it every few seconds costs time.
        others.setdefault("limits", None)
        others["breaker"] = _breaker(breaker) if isinstance(breaker, Mapping) else breaker
        for name, kind in _POLICIES.items():
            if isinstance(settings := others.get(name), Mapping):
                others[name] = _policy(id, name, kind, settings)
        spec = WorkerSpec.from_preset(id, run, preset, restart=restart, health=health, stop=stop, **others)
        return replace(self, roles=(*self.roles, Role(spec, lives or (Behaviour(),))))

    def together(self, *groups: Group) -> Scenario:
        """With all these groups of workers that stand and fall together; call it once, after `worker`.

        Raises:
            SpecError: a group is invalid.
        """
        specs = arranged((role.spec for role in self.roles), groups)
        check_order(specs)
        placed = zip(self.roles, specs, strict=True)
        return replace(self, roles=tuple(replace(role, spec=spec) for role, spec in placed))

    def at(self, earliest_s: float, latest_s: float | None = None) -> Moment:
        """At this time, or between two times as the seed decides: …"""
        return Moment(self, Planned(moves.Start(), earliest_s, latest_s))

    def during(self, phase: str, worker: str, *, after_s: float = 0.0) -> Moment:
        """When this worker is in this phase for the first time after then: …"""
        return Moment(self, Planned(moves.Start(), after_s, None, Phase(phase), worker))

    def at_random(
        self,
        number: int,
        *,
        words: Iterable[str] = RANDOM_WORDS,
        from_s: float = 0.0,
        until_s: float | None = None,
        workers: Iterable[str] = (),
    ) -> Scenario:
        """With this many moves that the seed chooses."""
        chance = Chance(
            moves=number, from_s=from_s, until_s=until_s, words=tuple(words), workers=tuple(workers)
        )
        return replace(self, chance=(*self.chance, chance))

    def expect(self, *expectations: Expectation) -> Scenario:
        """With these expectations."""
        return replace(self, expected=(*self.expected, *expectations))

    def problems(self) -> list[Problem]:
        """The problems of the scenario."""
        valid = 0 < self.lasts_s <= LONGEST_S
        found = [] if valid else [Problem("lasts_s", "must be above 0 and at most a year", self.lasts_s)]
        if not self.roles:
            found.append(Problem("worker", "is missing: a scenario needs at least one worker"))
        for number, planned in enumerate(self.plan):
            problems = planned_problems(planned, self.ids)
            found += (replace(each, field=f"move {number}: {each.field}") for each in problems)
        for role in self.roles:
            problems = [each for life in role.lives for each in life.problems()]
            found += (replace(each, field=f"{role.id}: {each.field}") for each in problems)
        for chance in self.chance:
            found += chance_problems(chance, self.ids)
        for each in self.expected:
            if each.worker not in self.ids:
                found.append(unknown_worker("expect", each.worker, self.ids))
        return found

    def checked(self) -> Self:
        """The scenario itself, if it is valid.

        Raises:
            ScenarioError: it is invalid.
        """
        if problems := self.problems():
            raise ScenarioError(self.name, problems)
        return self


_QUANTITIES = "for_s", "every_s", "takes_s", "back_after_s", "lines", "times", "generations", "jobs", "in_s"


def planned_problems(planned: Planned, ids: Iterable[str]) -> list[Problem]:
    """The problems of one move."""
    found = []
    if not 0 <= planned.earliest_s <= LONGEST_S:
        found.append(Problem("at", "must not be negative", planned.earliest_s))
    if planned.latest_s is not None and planned.latest_s < planned.earliest_s:
        found.append(Problem("at", "ends before it begins", [planned.earliest_s, planned.latest_s]))
    known = tuple(ids)
    for name, worker in (("worker", worker_of(planned.move)), ("of", planned.of)):
        if worker is not None and worker not in known:
            found.append(unknown_worker(name, worker, known))
    for name in _QUANTITIES:
        value = getattr(planned.move, name, None)
        if value is not None and value < 0:
            found.append(Problem(name, "must not be negative", value))
    return found


def chance_problems(chance: Chance, ids: tuple[str, ...]) -> list[Problem]:
    """The problems of moves at random."""
    found = [unknown_worker("random.workers", each, ids) for each in chance.workers if each not in ids]
    found += [
        Problem("random.words", f"{word!r} is not one of {', '.join((*RANDOM_WORDS, *NAMED_WORDS))}")
        for word in chance.words
        if word not in (*RANDOM_WORDS, *NAMED_WORDS)
    ]
    if chance.moves < 0 or chance.from_s < 0 or (chance.until_s or 0) < 0:
        found.append(Problem("random", "must not be negative"))
    return found


def unknown_worker(field: str, worker: str, ids: Iterable[str]) -> Problem:
    """The problem that no worker has this name."""
    return Problem(field, f"unknown worker {worker!r}; the workers are {', '.join(ids)}")


def _breaker(settings: Mapping[str, object]) -> BreakerPolicy:
    unknown = [name for name in settings if name not in field_names(BreakerPolicy)]
    if unknown or "name" not in settings:
        known = ", ".join(field_names(BreakerPolicy))
        problems = [
            Problem(f"breaker.{name}", f"is not a setting; the settings are {known}") for name in unknown
        ]
        missing = [] if "name" in settings else [Problem("breaker.name", "is missing")]
        raise SpecError("breaker", [*problems, *missing])
    try:
        return BreakerPolicy(**settings)  # type: ignore[arg-type]
    except SpecError as error:
        wrong = (replace(each, field=f"breaker.{each.field}") for each in error.problems)
        raise SpecError("breaker", wrong) from error


_POLICIES: Mapping[str, type] = {
    "ready": ReadyPolicy,
    "alive": AlivePolicy,
    "recycle": RecyclePolicy,
    "schedule": SchedulePolicy,
    "rollout": RolloutPolicy,
}


def _policy(id: str, name: str, kind: type, settings: Mapping[str, object]) -> object:
    unknown = [
        Problem(f"{name}.{key}", "is not a setting") for key in settings if key not in field_names(kind)
    ]
    if unknown:
        raise SpecError(id, unknown)
    probes: dict[str, Callable[[Any], object]] = {"http": HttpProbe, "tcp": TcpProbe, "command": CommandProbe}
    return kind(**{key: probes[key](value) if key in probes else value for key, value in settings.items()})


class Moment:
    """A moment of a scenario; each method returns the scenario with that move added."""

    def __init__(self, scenario: Scenario, planned: Planned) -> None:
        self._scenario = scenario
        self._planned = planned

    def do(self, move: Move) -> Scenario:
        """Make this move."""
        planned = replace(self._planned, move=move)
        return replace(self._scenario, plan=(*self._scenario.plan, planned))

    def kill(self, worker: str, signal: int = signals.SIGKILL) -> Scenario:
        """Send a worker's process a signal."""
        return self.do(moves.Kill(worker, int(signal)))

    def freeze(self, worker: str, for_s: float | None = None) -> Scenario:
        """SIGSTOP a worker, for a while or until it is thawed."""
        return self.do(moves.Freeze(worker, for_s))

    def thaw(self, worker: str) -> Scenario:
        """SIGCONT a worker."""
        return self.do(moves.Thaw(worker))

    def slow_heartbeats(self, worker: str, every_s: float = 10.0, for_s: float | None = None) -> Scenario:
        """Slow a worker's heartbeats down."""
        return self.do(moves.SlowHeartbeats(worker, every_s, for_s))

    def lose_heartbeats(self, worker: str, for_s: float | None = None) -> Scenario:
        """Lose a worker's frames."""
        return self.do(moves.LoseHeartbeats(worker, for_s))

    def garbage(self, worker: str, lines: int = 1) -> Scenario:
        """Let a worker send lines that are not frames."""
        return self.do(moves.Garbage(worker, lines))

    def probe_fails(self, worker: str, for_s: float | None = None) -> Scenario:
        """Let the probe of a worker's liveness fail."""
        return self.do(moves.ProbeFails(worker, for_s))

    def late_frame(self, worker: str, generations: int = 1) -> Scenario:
        """Deliver a frame of an older incarnation."""
        return self.do(moves.LateFrame(worker, generations))

    def stale_timer(self, worker: str, generations: int = 1) -> Scenario:
        """Deliver the restart timer of an older attempt."""
        return self.do(moves.StaleTimer(worker, generations))

    def database(self, state: str, for_s: float | None = None, takes_s: float = 5.0) -> Scenario:
        """Make the database locked, gone, full, slow, or available again."""
        return self.do(moves.Database(moves.DatabaseState(state), for_s, takes_s))

    def set_clock(self, by_s: float) -> Scenario:
        """Set the wall clock forward or back."""
        return self.do(moves.SetClock(by_s))

    def host_sleep(self, for_s: float) -> Scenario:
        """Suspend the host."""
        return self.do(moves.HostSleep(for_s))

    def actor_raises(self, actor: str, times: int = 1) -> Scenario:
        """Make an actor raise."""
        return self.do(moves.ActorRaises(moves.ActorName(actor), times))

    def pause(self, worker: str = EVERY_WORKER, for_s: float | None = None) -> Scenario:
        """Pause a worker, or everything."""
        return self.do(moves.Pause(worker, for_s))

    def resume(self, worker: str = EVERY_WORKER) -> Scenario:
        """End a pause."""
        return self.do(moves.Resume(worker))

    def stop(self, worker: str = EVERY_WORKER) -> Scenario:
        """Stop a worker, or everything."""
        return self.do(moves.Stop(worker))

    def start(self, worker: str = EVERY_WORKER) -> Scenario:
        """Start a worker, or everything."""
        return self.do(moves.Start(worker))

    def restart(self, worker: str) -> Scenario:
        """Clear a worker's counters and restart it."""
        return self.do(moves.Restart(worker))

    def reset(self, worker: str) -> Scenario:
        """Clear a worker's counters and failure."""
        return self.do(moves.Reset(worker))

    def upgrade_supervisor(self, times: int = 1) -> Scenario:
        """Replace the supervisor by another program; the workers run on."""
        return self.do(moves.UpgradeSupervisor(times))

    def roll_out(self, worker: str) -> Scenario:
        """Give the workers of its table new processes; each is ready before an old one stops."""
        return self.do(moves.RollOut(worker))

    def enqueue(self, queue: str, jobs: int = 1, **settings: Any) -> Scenario:
        """Put jobs into a queue; the settings are those of `Enqueue`."""
        return self.do(Enqueue(queue, jobs, **settings))

    def kill_supervisor(self, back_after_s: float = 1.0) -> Scenario:
        """kill -9 the supervisor and start it again."""
        return self.do(moves.KillSupervisor(back_after_s))
