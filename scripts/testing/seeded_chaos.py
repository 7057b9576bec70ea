"""What a seed decides in a test: when, which worker, and how; and scenarios in virtual time."""

from __future__ import annotations

import random
import signal as signals
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from .systems import PATIENCE_S, SystemUnderTest

if TYPE_CHECKING:
    from rekindle.actors import WorkerSpec
    from rekindle.actors.simulation import Outcome, Scenario

    from .virtual import Lives

T = TypeVar("T")

SIGNALS = (signals.SIGKILL, signals.SIGTERM, signals.SIGSEGV, signals.SIGABRT)
"""The signals that `kill` chooses from."""


class Chaos:
    """The fixture `chaos`: choices that one seed repeats."""

    def __init__(self, seed: int, test: str = "") -> None:
        self.seed = seed
        self.random = random.Random(seed)
        """For choices of your own."""
        self.made: list[str] = []
        """What was done, one sentence each."""
        self._test = test
        self._outcome: Outcome | None = None

    # ── on real processes ────────────────────────────────────────────────────────────────

    def wait(self, least_s: float, most_s: float) -> float:
        """Wait for a time that the seed chooses."""
        seconds = self.random.uniform(least_s, most_s)
        self.made.append(f"waited {seconds:.3f} s")
        time.sleep(seconds)
        return seconds

    def choose(self, options: Sequence[T]) -> T:
        """One of these, chosen by the seed."""
        chosen = self.random.choice(options)
        self.made.append(f"chose {chosen!r}")
        return chosen

    def kill(
        self, system: SystemUnderTest, component_id: str | None = None, signal: int | None = None
    ) -> tuple[str, int]:
        """Kill a worker, by default any one by any signal; returns its id and pid.

        If the worker has no process at the moment, this waits for one.
        """
        id_ = component_id if component_id is not None else self.random.choice(system.ids)
        how = signals.Signals(self.random.choice(SIGNALS) if signal is None else signal)
        system.wait_until(id_, lambda worker: worker.pid is not None, PATIENCE_S)
        pid = system.kill(id_, how)
        self.made.append(f"sent {how.name} to {id_}, pid {pid}")
        return id_, pid

    def freeze(
        self, system: SystemUnderTest, component_id: str | None = None, most_s: float = 1.0
    ) -> tuple[str, int]:
        """Freeze a worker for a while, then continue it; returns its id and pid."""
        id_ = component_id if component_id is not None else self.random.choice(system.ids)
        system.wait_until(id_, lambda worker: worker.pid is not None, PATIENCE_S)
        pid = system.freeze(id_)
        self.made.append(f"froze {id_}, pid {pid}")
        self.wait(0.0, most_s)
        if system.status(id_).pid == pid:
            system.thaw(id_)
            self.made.append(f"thawed {id_}, pid {pid}")
        return id_, pid

    # ── in virtual time ──────────────────────────────────────────────────────────────────

    def play(
        self,
        *workers: WorkerSpec | Scenario,
        lives: Lives | None = None,
        moves: int = 50,
        lasts_s: float = 600.0,
    ) -> Outcome:
        """Make moves of every kind on workers in virtual time, as the seed chooses.

        Args:
            workers: specs of workers; or a scenario, which is complete by itself.
            lives: what the workers do by themselves; None: they run on.
            moves: how many moves there are.
            lasts_s: for how many virtual seconds.

        Raises:
            AssertionError: an invariant was violated, or an expectation was not met.
        """
        from .virtual import LIVES_ON, play, scenario_of

        scenario = scenario_of(workers, LIVES_ON if lives is None else lives)
        if not (len(workers) == 1 and scenario is workers[0]):
            scenario = replace(scenario, lasts_s=lasts_s).at_random(moves)
        self._outcome = outcome = play(scenario, self.seed)
        self.made.append(f"played {scenario.name!r}: {len(outcome.steps)} moves in {outcome.lasted_s:g} s")
        problems = [*map(str, outcome.violations), *outcome.unmet]
        assert not problems, "; ".join(problems)
        return outcome

    # ── for the report of a failure ──────────────────────────────────────────────────────

    def sections(self) -> Iterator[tuple[str, str]]:
        """The seed, what was done under it, and how to repeat it."""
        again = f"repeat with: pytest {self._test!r} --chaos-seed {self.seed}"
        yield "rekindle: chaos", "\n".join((*self.made, again))
        if self._outcome is not None:
            from .virtual import sections_of

            yield from sections_of(self._outcome.history, self._outcome.scenario.ids)
