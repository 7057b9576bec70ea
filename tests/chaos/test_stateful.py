"""hypothesis leads the real actors through arbitrary steps; no rule is ever broken.

Runs are deterministic, so what it finds it also shrinks. `REKINDLE_STATEFUL` sets the number of
examples; with it, each run explores others.
"""

from __future__ import annotations

import os
import signal
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from rekindle.actors.simulation import (
    ActorName,
    Behaviour,
    DatabaseState,
    Move,
    Phase,
    Scenario,
    VirtualSystem,
    cannot_be_spawned,
    dies_after,
    hangs,
    ignores_term,
    lines,
    needs_database,
    never_healthy,
    runs,
    says_recovering,
    stops_heartbeating,
)
from rekindle.actors.simulation.scenarios import moves
from rekindle.persistence import MemoryStore

EXAMPLES = int(os.environ.get("REKINDLE_STATEFUL", "0"))

WORKERS = st.sampled_from(["one", "two"])
SOME = st.sampled_from([None, "one", "two"])
"""A worker, or all of them."""
SECONDS = st.sampled_from([0.0, 0.5, 1.0, 2.0, 5.0, 15.0, 31.0, 60.0, 301.0, 601.0])
SHORT = st.sampled_from([0.1, 1.0, 4.0, 20.0, 90.0])
LIVES = st.sampled_from(
    [
        runs(),
        dies_after(0.5),
        dies_after(3),
        dies_after(70),
        dies_after(400),
        dies_after(10, exit=0),
        dies_after(20, signal=11),
        hangs(after_s=8),
        ignores_term(),
        hangs(after_s=5) | ignores_term(),
        never_healthy(),
        stops_heartbeating(12),
        says_recovering(40),
        says_recovering(500),
        cannot_be_spawned(),
        needs_database(30),
    ]
)
POLICIES: list[dict[str, Any]] = [
    {"preset": "steady"},
    {"preset": "steady", "restart": {"max_in_window": None, "jitter": 0.5}},
    {"preset": "steady", "restart": {"max_in_window": 2, "window_s": 60.0, "max_lifetime": 4}},
    {"preset": "patient"},
    {"preset": "patient", "restart": {"restart_on": "always", "reset_after_healthy_s": 10.0}},
    {"preset": "notify", "restart": {"enabled": True}},
    {"preset": "plugin"},
    {"preset": "plugin", "reports_health": False},
]
ACTORS = st.sampled_from(list(ActorName))
PHASES = st.sampled_from([None, *Phase])


class Supervision(RuleBasedStateMachine):
    """Two workers, and everything that can happen to them."""

    def __init__(self) -> None:
        super().__init__()
        self.system: VirtualSystem | None = None

    @initialize(
        one=st.sampled_from(POLICIES),
        two=st.sampled_from(POLICIES),
        lives=st.tuples(st.lists(LIVES, min_size=1, max_size=3), st.lists(LIVES, min_size=1, max_size=3)),
        after=st.booleans(),
        seed=st.integers(0, 1000),
    )
    def begin(
        self,
        one: dict[str, Any],
        two: dict[str, Any],
        lives: tuple[list[Behaviour], list[Behaviour]],
        after: bool,
        seed: int,
    ) -> None:
        scenario = Scenario("stateful").worker("one", *lives[0], **one)
        scenario = scenario.worker("two", *lives[1], **two, after=("one",) if after else ())
        self.system = VirtualSystem(scenario, seed, store=MemoryStore())

    # ── time ─────────────────────────────────────────────────────────────────────────────

    @rule(seconds=SECONDS)
    def time_passes(self, seconds: float) -> None:
        assert self.system is not None
        self.system.run_for(seconds)

    @rule(by_s=st.sampled_from([-86_400.0, -300.0, -1.0, 1.0, 299.0, 86_400.0, 31_536_000.0]))
    def the_wall_clock_is_set(self, by_s: float) -> None:
        self._make(moves.SetClock(by_s))

    @rule(for_s=SHORT)
    def the_host_sleeps(self, for_s: float) -> None:
        self._make(moves.HostSleep(for_s))

    # ── what operators do ────────────────────────────────────────────────────────────────

    @rule(worker=SOME)
    def an_operator_starts(self, worker: str | None) -> None:
        self._make(moves.Start(worker or moves.EVERY_WORKER))

    @rule(worker=SOME)
    def an_operator_stops(self, worker: str | None) -> None:
        self._make(moves.Stop(worker or moves.EVERY_WORKER))

    @rule(worker=WORKERS)
    def an_operator_stops_in_the_middle_of_a_delay(self, worker: str) -> None:
        self._make(moves.Stop(worker), Phase.BACKOFF, worker)

    @rule(worker=SOME, for_s=st.none() | SHORT)
    def an_operator_pauses(self, worker: str | None, for_s: float | None) -> None:
        self._make(moves.Pause(worker or moves.EVERY_WORKER, for_s))

    @rule(worker=SOME)
    def an_operator_resumes(self, worker: str | None) -> None:
        self._make(moves.Resume(worker or moves.EVERY_WORKER))

    @rule(worker=WORKERS)
    def an_operator_restarts(self, worker: str) -> None:
        self._make(moves.Restart(worker))

    @rule(worker=WORKERS)
    def an_operator_resets(self, worker: str) -> None:
        self._make(moves.Reset(worker))

    # ── what happens to workers ──────────────────────────────────────────────────────────

    @rule(worker=WORKERS, signum=st.sampled_from([signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV]))
    def a_worker_is_killed(self, worker: str, signum: int) -> None:
        self._make(moves.Kill(worker, int(signum)))

    @rule(worker=WORKERS, for_s=st.none() | SHORT)
    def a_worker_is_frozen(self, worker: str, for_s: float | None) -> None:
        self._make(moves.Freeze(worker, for_s))

    @rule(worker=WORKERS)
    def a_worker_is_thawed(self, worker: str) -> None:
        self._make(moves.Thaw(worker))

    @rule(worker=WORKERS, for_s=SHORT)
    def heartbeats_are_lost(self, worker: str, for_s: float) -> None:
        self._make(moves.LoseHeartbeats(worker, for_s))

    @rule(worker=WORKERS, every_s=SHORT, for_s=SHORT)
    def heartbeats_are_slow(self, worker: str, every_s: float, for_s: float) -> None:
        self._make(moves.SlowHeartbeats(worker, every_s, for_s))

    @rule(worker=WORKERS, number=st.sampled_from([1, 99, 150]))
    def a_worker_sends_garbage(self, worker: str, number: int) -> None:
        self._make(moves.Garbage(worker, number))

    @rule(worker=WORKERS, older=st.sampled_from([1, 2]))
    def a_frame_comes_late(self, worker: str, older: int) -> None:
        self._make(moves.LateFrame(worker, older))

    @rule(worker=WORKERS, older=st.sampled_from([1, 2]))
    def an_old_timer_fires(self, worker: str, older: int) -> None:
        self._make(moves.StaleTimer(worker, older))

    # ── what happens to us ───────────────────────────────────────────────────────────────

    @rule(
        state=st.sampled_from([state for state in DatabaseState if state is not DatabaseState.BACK]),
        for_s=st.none() | SHORT,
        takes_s=SHORT,
    )
    def the_database_fails(self, state: DatabaseState, for_s: float | None, takes_s: float) -> None:
        self._make(moves.Database(state, for_s, takes_s))

    @rule()
    def the_database_is_back(self) -> None:
        self._make(moves.Database(DatabaseState.BACK))

    @rule(actor=ACTORS, times=st.sampled_from([1, 2]))
    def an_actor_raises(self, actor: ActorName, times: int) -> None:
        self._make(moves.ActorRaises(actor, times))

    @rule(phase=PHASES, worker=WORKERS, back_after_s=SHORT)
    def the_supervisor_is_killed(self, phase: Phase | None, worker: str, back_after_s: float) -> None:
        self._make(moves.KillSupervisor(back_after_s), phase, worker if phase else None)

    # ── what always holds ────────────────────────────────────────────────────────────────

    @invariant()
    @precondition(lambda self: self.system is not None)
    def every_rule_holds(self) -> None:
        assert self.system is not None
        self.system.count()
        self._hold(self.system)

    def teardown(self) -> None:
        """Once the faults stop, every wanted worker comes up, and no process is left over."""
        system, self.system = self.system, None
        if system is None:
            return
        try:
            if not system.violations:
                system.finish()
                self._hold(system)
        finally:
            system.close()

    def _make(self, move: Move, during: Phase | None = None, of: str | None = None) -> None:
        assert self.system is not None
        self.system.make(move, during=during, of=of)

    @staticmethod
    def _hold(system: VirtualSystem) -> None:
        found = [str(each) for each in system.violations]
        assert not found, "\n".join((*found, "", *lines(system.history)))


# The same examples every time, unless more are asked for.
TestSupervision = Supervision.TestCase
TestSupervision.settings = settings(
    max_examples=EXAMPLES or 40, stateful_step_count=30, deadline=None, derandomize=not EXAMPLES
)
