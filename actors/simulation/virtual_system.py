"""A system in virtual time that is led by hand, step by step, under the rules of every scenario.

system = VirtualSystem(Scenario("mine").worker("tag", dies_after(3)), store=MemoryStore())
system.run_for(3600)
assert system.status("tag").shown == "failed"
assert system.finish().violations == ()
"""

from __future__ import annotations

from ..ports import Store
from .scenarios.history import Decided, Reported, Spawned
from .scenarios.invariants import Violation
from .scenarios.moves import Move, Phase
from .scenarios.scenario import Scenario, Step
from .virtual_run import Outcome, VirtualRun


class VirtualSystem(VirtualRun):
    """A supervisor and its workers; time passes and things happen when you say so."""

    def __init__(self, scenario: Scenario, seed: int = 0, *, store: Store) -> None:
        """Start the supervisor and the workers of a scenario; of its plan, nothing is done.

        Args:
            scenario: who is there.
            seed: the order in which messages are delivered.
            store: an empty one, where the supervisors remember.

        Raises:
            ScenarioError: it makes no sense.
        """
        # Every heartbeat is sent: which of them could be left out depends on moves that are to come.
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
        """The rules that did not hold so far."""
        return tuple(self.watch.violations)

    def settle(self) -> None:
        """Let everything happen that needs no time."""
        self.advance_to(self.now)

    def run_for(self, seconds: float) -> None:
        """Let time pass."""
        self.advance_to(self.now + seconds)

    def make(self, move: Move, *, during: Phase | None = None, of: str | None = None) -> None:
        """Do something to the system now, or as soon as a worker is in a phase."""
        step = Step(len(self._made), self.now, move, during, of)
        self._made.append(step)
        self._take(step)
        self.settle()

    # ── what there is to see ─────────────────────────────────────────────────────────────

    def status(self, worker: str) -> Reported:
        """What the supervisor says of a worker now.

        Raises:
            LookupError: there is no such worker, or no supervisor at the moment.
        """
        for each in () if self._life is None else self._life.report():
            if each.worker == worker:
                return each
        raise LookupError(f"nobody says anything of a worker called {worker!r}")

    def starts(self, worker: str) -> list[float]:
        """When processes of a worker were started."""
        return [each.at for each in self.history.of(Spawned, worker)]

    def deaths(self, worker: str) -> list[Decided]:
        """The deaths of a worker, with what was decided on them."""
        return self.history.of(Decided, worker)

    # ── the end ──────────────────────────────────────────────────────────────────────────

    def finish(self) -> Outcome:
        """Let the faults stop, wait for what is wanted, and stop everything; what came of it."""
        self._calm_down()
        self._wait_for_what_is_wanted()
        self._shut_down()
        self.steps = tuple(self._made)
        return Outcome(
            self.scenario, self.seed, self.steps, self.history, self.violations, (), self.clock.now
        )

    def close(self) -> None:
        """End the actors, whatever state they are in."""
        if self._life is not None:
            self._life.runtime.crash()
            self._life = None
