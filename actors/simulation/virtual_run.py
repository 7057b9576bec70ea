"""Runs a scenario in virtual time: the real actors, scripted processes, one thread, a seed."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from ..errors import Problem
from ..ports import Store
from ..spec.policies.stop_policy import Urgency
from .history_check import HistoryCheck
from .scenarios.behaviours import Behaviour, life_of
from .scenarios.expectations import Tolerance, unmet
from .scenarios.history import Concluded, Counted, History, Moved
from .scenarios.invariants import Violation, unreached
from .scenarios.moves import WORDS, Phase, in_words, worker_of
from .scenarios.scenario import Role, Scenario, ScenarioError, Step
from .scripted.scripted_processes import Script
from .scripted.scripted_queues import QueuesInReach, ScriptedQueues
from .seeded_steps import draw
from .simulation_runtime import EndlessMomentError, VirtualClock
from .supervisor_life import SupervisorLife
from .virtual_moves import VirtualMoves

SLOWEST_COMMIT_S = 600.0
"""How long the end of a run waits at most until a slow store has persisted everything."""

_CHANGING = frozenset({"freeze", "thaw", "slow_heartbeats", "lose_heartbeats", "host_sleep", "garbage"})
"""Moves before which the last heartbeat matters."""

MOST_TIMERS = 10_000
"""How many timers may be due in one moment."""
MOST_SPARES = 10
"""How many workers of one table there may be in a scenario with rollouts."""

COMES_TO_REST = "the supervisor comes to rest"
"""The rule that its actors do not keep each other busy without an end."""

SHUTS_DOWN = "a shutdown ends"
"""The rule that it is answered, also if processes survive SIGKILL."""

STORE_S = 20.0
"""How long records may wait for the store after it is available again."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run: its history, the violated invariants and the unmet expectations."""

    scenario: Scenario
    seed: int
    steps: tuple[Step, ...]
    history: History
    violations: tuple[Violation, ...]
    unmet: tuple[str, ...]
    lasted_s: float

    @property
    def passed(self) -> bool:
        """Whether no invariant was violated and every expectation was met."""
        return not self.violations and not self.unmet


def run_virtual(
    scenario: Scenario,
    seed: int = 0,
    *,
    store: Store,
    steps: tuple[Step, ...] | None = None,
    sparse: bool = True,
) -> Outcome:
    """Run a scenario once.

    Args:
        scenario: what happens.
        seed: decides everything that the scenario leaves open.
        store: an empty store for the supervisors of the scenario.
        steps: the moves to make, instead of the ones that the seed draws.
        sparse: leave out heartbeats that change nothing.

    Raises:
        ScenarioError: the scenario is invalid.
    """
    scenario.checked()
    drawn = draw(scenario, seed) if steps is None else steps
    return VirtualRun(scenario, seed, drawn, store, sparse).run()


class VirtualRun:
    """One run of one scenario."""

    def __init__(
        self, scenario: Scenario, seed: int, steps: tuple[Step, ...], store: Store, sparse: bool
    ) -> None:
        self.scenario = scenario
        self.seed = seed
        self.steps = steps
        self.store = store
        self.check = HistoryCheck(
            (role.spec for role in scenario.roles),
            most_starts=scenario.max_concurrent_starts,
        )
        self.history = History(hear=self.check.take)
        self.note = self.history.add
        """Record an entry."""
        self.clock = VirtualClock()
        self.roles: dict[str, Role] = {role.id: role for role in scenario.roles}
        self.scripts = {role.id: self._script(role) for role in scenario.roles}
        for role in scenario.roles:  # a spare of a rollout lives as the worker whose copy it is
            stem, _, number = role.id.rpartition(":")
            stem = stem if stem and number.isdecimal() else role.id
            for spare in range(MOST_SPARES):
                self.scripts.setdefault(f"{stem}:{spare}", self._script(role))
        self.pids = itertools.count(1001)
        self.changes = (
            sorted(step.at for step in steps if WORDS[type(step.move)] in _CHANGING) if sparse else None
        )
        self.lives = 0
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self.queues = self._queues()
        """None if no worker serves a queue."""
        self._armed: list[Step] = []
        self._life: SupervisorLife | None = None

    def _queues(self) -> ScriptedQueues | None:
        if not self.scenario.queues:
            return None
        jobs = self.store.jobs
        if not isinstance(jobs, QueuesInReach):
            problem = Problem("jobs", "need a store whose queues are in this process, such as MemoryStore")
            raise ScenarioError(self.scenario.name, [problem])
        return ScriptedQueues(jobs, self.clock, self.note, self.at)

    def _script(self, role: Role) -> Script:
        """The lives of a worker in the order of its starts, over all lives of the supervisor."""
        starts = itertools.count()
        return lambda _generation: life_of(role.lives, next(starts), self.clock.now)

    # ── the run ──────────────────────────────────────────────────────────────────────────

    def run(self) -> Outcome:
        """Run everything, from the first start to the end of the last process."""
        try:
            self._run()
        except EndlessMomentError as error:
            self._does_not_rest(error)
        missing = unmet(self.scenario.expected, self.history.entries, Tolerance())
        return Outcome(
            self.scenario,
            self.seed,
            self.steps,
            self.history,
            tuple(self.check.violations),
            missing,
            self.clock.now,
        )

    def _run(self) -> None:
        self.begin_life()
        for step in self.steps:
            self.at(step.at, lambda step=step: self._take(step))  # type: ignore[misc]
        self.advance_to(self.scenario.lasts_s)
        self._calm_down()
        self._wait_for_what_is_wanted()
        self._shut_down()

    def _does_not_rest(self, error: EndlessMomentError) -> None:
        """The supervisor is busy forever: the run ends here."""
        entry = len(self.history) - 1
        self.check.violations.append(Violation(COMES_TO_REST, self.clock.now, str(error), entry))
        if self._life is not None:
            self._life.runtime.crash()

    def at(self, moment: float, what: Callable[[], None]) -> None:
        """Do something at a time of the scenario."""
        heapq.heappush(self._later, (moment, next(self._order), what))

    def advance_to(self, moment: float) -> None:
        """Let time pass until then; a planned move that is due at the same time as a timer comes after it."""
        since, fired = self.clock.now, 0
        while True:
            life = self._life
            if self.clock.now > since:
                since, fired = self.clock.now, 0
            elif fired > MOST_TIMERS:
                raise EndlessMomentError(f"{MOST_TIMERS} timers in one moment")
            if life is not None:
                life.runtime.settle()
                if self._life is not life:
                    continue
            timers = None if life is None else life.runtime.virtual_timers
            due = None if timers is None else timers.next_due()
            planned = self._later[0][0] if self._later else inf
            if planned <= moment and (due is None or planned < due):
                self.clock.now = max(self.clock.now, planned)
                heapq.heappop(self._later)[2]()
            elif due is not None and due <= moment:
                assert timers is not None
                timers.fire()
                fired += 1
            else:
                self.clock.now = max(self.clock.now, moment)
                return

    # ── moves ────────────────────────────────────────────────────────────────────────────

    def _take(self, step: Step) -> None:
        if step.during is None:
            self._make(step)
        else:
            self._armed.append(step)

    def reached(self, phase: Phase, worker: str, in_s: float = 0.0) -> None:
        """A worker is in a phase, or will be in `in_s`: make the moves that wait for it."""
        for step in [each for each in self._armed if each.during is phase and each.of == worker]:
            self._armed.remove(step)
            if in_s:
                self.at(self.clock.now + in_s, lambda step=step: self._make(step))  # type: ignore[misc]
            else:
                self._make(step)

    @property
    def waits_for_phases(self) -> bool:
        """Whether any move waits for a phase."""
        return bool(self._armed)

    def _make(self, step: Step) -> None:
        move = step.move
        self.note(Moved(self.clock.now, step.number, in_words(move), WORDS[type(move)], worker_of(move)))
        if self._life is not None:
            VirtualMoves(self._life).make(move)

    # ── supervisors ──────────────────────────────────────────────────────────────────────

    def begin_life(self) -> None:
        """Start a supervisor with the data of the store."""
        if self._life is None:
            self.lives += 1
            self.count()
            self._life = SupervisorLife(self, self.lives)
            self._life.begin()

    def kill_supervisor(self, back_after_s: float) -> None:
        """Kill the supervisor as kill -9 does, and start another one after a while."""
        if self._life is not None:
            life, self._life = self._life, None
            life.kill()
            self.at(self.clock.now + back_after_s, self.begin_life)

    def count(self) -> None:
        """Record the counters of the store."""
        if self.queues is not None:
            self.queues.count()
        known = self.store.load().workers
        for id_ in self.roles:
            kept = known.get(id_)
            if kept is not None:
                failed = kept.failed_at_wall_ms is not None
                self.note(Counted(self.clock.now, id_, kept.restart_count, kept.streak_count, failed))

    # ── the end ──────────────────────────────────────────────────────────────────────────

    def _calm_down(self) -> None:
        """End the faults."""
        self._armed.clear()
        self._later.clear()
        if self.queues is not None:
            self.queues.is_calm = True
        self.begin_life()
        assert self._life is not None
        self._life.calm_down()

    def _wait_for_what_is_wanted(self) -> None:
        """Wait until every worker is in its wanted state, at most as long as the policies allow."""
        assert self._life is not None
        last = self.clock.now + bound_s(self.scenario)
        step = 0.5
        while self.clock.now < last:
            self.advance_to(min(last, self.clock.now + step))
            wanted = [unreached(self.check.facts, entry) for entry in self._life.report()]
            if self.check.facts.everything_is_told and not any(wanted):
                break
            step *= 2
        for entry in self._life.report():
            self.note(entry)

    def _lose_patience(self, life: SupervisorLife) -> None:
        """Every other seed makes its last stop firmer, as a second and a third Ctrl-C do."""
        if self.seed % 2:
            self.at(self.clock.now + 0.7, lambda: life.escalate_stop(Urgency.FIRM))
            self.at(self.clock.now + 1.1, lambda: life.escalate_stop(Urgency.KILL))

    def _shut_down(self) -> None:
        assert self._life is not None
        life = self._life
        longest = max(role.spec.stop.total_s for role in self.scenario.roles) * (1 + _depth(self.scenario))
        last = self.clock.now + longest + 5.0
        life.shut_down()
        self._lose_patience(life)
        while not life.has_stopped and self.clock.now < last:
            self.advance_to(min(last, self.clock.now + 1.0))
        if not life.has_stopped:
            what = f"the supervisor has not stopped {longest + 5.0:g} s after it was told to"
            self.check.violations.append(Violation(SHUTS_DOWN, self.clock.now, what, len(self.history) - 1))
        life.flush()
        last = self.clock.now + SLOWEST_COMMIT_S
        while not life.has_flushed and self.clock.now < last:
            self.advance_to(min(last, self.clock.now + 1.0))
        self.count()
        expected = tuple(
            id_ for id_, role in self.roles.items() if any(_survives_kill(each) for each in role.lives)
        )
        self.note(Concluded(self.clock.now, life.left(), expected))
        life.close()


def _survives_kill(does: Behaviour) -> bool:
    """Whether it can outlive the stop of its supervisor."""
    return does.ignores_kill or does.kill_takes is not None


def bound_s(scenario: Scenario) -> float:
    """How long after the last fault every worker must be in its wanted state."""
    longest = 0.0
    for role in scenario.roles:
        health, restart = role.spec.health, role.spec.restart
        silence = (health.staleness_s or 0.0) * (health.max_misses + 1) + (health.recovery_max_s or 0.0)
        breaker = role.spec.breaker
        held = 0.0 if breaker is None else breaker.canary_max_delay_s + breaker.hold_s
        slow = max((each.spawn_takes + (each.kill_takes or 0.0) for each in role.lives), default=0.0)
        stop = role.spec.stop.total_s + slow
        longest = max(longest, restart.max_delay_s + health.startup_timeout_s + silence + stop + held)
    return (longest + STORE_S) * (1 + _depth(scenario))


def _depth(scenario: Scenario) -> int:
    """The longest possible chain of workers that wait for each other."""
    return sum(1 for role in scenario.roles if role.spec.after)
