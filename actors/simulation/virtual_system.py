"""A system in virtual time that the caller drives step by step, with the invariants checked.

system = VirtualSystem(Scenario("mine").worker("tag", dies_after(3)), store=MemoryStore())
system.run_for(3600)
assert system.status("tag").shown == "failed"
assert system.finish().violations == ()
"""

from __future__ import annotations

from ..ports import Store
from .scenarios.history import Decided, FinalReport, Spawned
from .scenarios.invariants import Violation
from .scenarios.moves import Move, Phase
from .scenarios.scenario import Scenario, Step
from .virtual_run import Outcome, VirtualRun


class VirtualSystem(VirtualRun):
    """A supervisor and its workers; the caller lets time pass and makes the moves."""

    def __init__(self, scenario: Scenario, seed: int = 0, *, store: Store) -> None:
        """Start the supervisor and the workers of a scenario; its planned moves are not made.

        Args:
            scenario: the workers.
            seed: decides the order in which messages are delivered.
            store: an empty store for the supervisors.

        Raises:
            ScenarioError: the scenario is invalid.
        """
        # Every heartbeat is sent: which ones could be left out depends on later moves.
        super().__init__(scenario.checked(), seed, (), store, sparse=False)
        self._made: list[Step] = []
        self.begin_life()
        self.settle()

    @property
    def now(self) -> float:
        """Virtual seconds since the beginning."""
        return self.clock.now

    @property
    def violations(self) -> tuple[Violation, ...]:
        """The violations so far."""
        return tuple(self.check.violations)

    def settle(self) -> None:
        """Deliver all messages that are under way; no time passes."""
        self.advance_to(self.now)

    def run_for(self, seconds: float) -> None:
        """Let time pass."""
        self.advance_to(self.now + seconds)

    def make(self, move: Move, *, during: Phase | None = None, of: str | None = None) -> None:
        """Make a move now, or as soon as a worker is in a phase."""
        step = Step(len(self._made), self.now, move, during, of)
        self._made.append(step)
        self._take(step)
        self.settle()

    # ── what a test observes ─────────────────────────────────────────────────────────────

    def status(self, worker: str) -> FinalReport:
        """What the supervisor reports of a worker now.

        Raises:
            LookupError: the worker does not exist, or no supervisor runs at the moment.
        """
        for each in () if self._life is None else self._life.report():
            if each.worker == worker:
                return each
        raise LookupError(f"no status for worker {worker!r}: it is unknown, or no supervisor runs")

    def starts(self, worker: str) -> list[float]:
        """When processes of a worker were started."""
        return [each.at for each in self.history.of(Spawned, worker)]

    def deaths(self, worker: str) -> list[Decided]:
        """The deaths of a worker, with the decisions on them."""
        return self.history.of(Decided, worker)

    # ── the end ──────────────────────────────────────────────────────────────────────────

    def finish(self) -> Outcome:
        """End the faults, wait until every worker is in its wanted state, and stop everything."""
        self._calm_down()
        self._wait_for_what_is_wanted()
        self._shut_down()
        self.steps = tuple(self._made)
        return Outcome(
            self.scenario, self.seed, self.steps, self.history, self.violations, (), self.clock.now
        )

    def close(self) -> None:
        """End the actors, in any state."""
        if self._life is not None:
            self._life.runtime.crash()
            self._life = None
