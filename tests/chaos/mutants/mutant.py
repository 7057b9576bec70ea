"""A mistake that is planted in the supervisor, and how chaos is asked to find it."""

from __future__ import annotations
import __future__

import inspect
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import count
from types import FunctionType

import pytest

from rekindle.actors.simulation import Outcome, Scenario
from rekindle.cli.chaos.library import library
from rekindle.cli.chaos.run_report import Failure
from rekindle.cli.chaos.scenario_file import load_scenario
from rekindle.cli.chaos.seed_search import Narrowing, explore, repeats, smallest

Plant = Callable[[pytest.MonkeyPatch], None]
Run = tuple[str, Scenario, int]
"""A scenario with its name, and a seed."""

MOST_RUNS = 2000
MOST_LINES = 12


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mistake, and the scenario that shows it within a few seeds."""

    plant: Plant
    scenario: str = "everything_at_random"
    first_seed: int = 0
    """Where the search begins: the seed that showed it when that was last looked up."""

    @property
    def name(self) -> str:
        """The name of the mistake."""
        return self.plant.__name__


@dataclass(frozen=True, slots=True)
class Conviction:
    """What convicts a mutant: the run, its number in the search, and the shrunk report."""

    scenario: str
    runs: int
    outcome: Outcome
    report: tuple[str, ...]

    @property
    def rule(self) -> str:
        """The broken rule, or the expectation that is not met."""
        outcome = self.outcome
        return outcome.violations[0].rule if outcome.violations else f"expectation: {outcome.unmet[0]}"


@cache
def scenarios() -> dict[str, Scenario]:
    """The scenarios that ship with Rekindle."""
    return {name: load_scenario(path) for name, path in library().items()}


def runs_of(name: str, seeds: int, first: int = 0) -> Iterator[Run]:
    """The runs of one scenario, under these many seeds."""
    scenario = scenarios()[name]
    yield from ((name, scenario, seed) for seed in range(first, first + seeds))


def all_runs() -> Iterator[Run]:
    """The runs of a search, without an end: each scenario in turn, ten times as often if it draws moves."""
    known = scenarios()
    storms = {name: scenario for name, scenario in known.items() if scenario.chance}
    for seed in count():
        for name, scenario in known.items():
            if name not in storms:
                yield name, scenario, seed
        for name, scenario in storms.items():
            yield from ((name, scenario, each) for each in range(10 * seed, 10 * seed + 10))


def search(runs: Iterable[Run], *, shrunk: bool = True) -> Conviction | None:
    """The first of these runs that finds something, made as small as possible; None if no run does."""
    for number, (name, scenario, seed) in enumerate(runs, 1):
        outcome = next(explore(scenario, [seed], Narrowing()))
        if not outcome.passed:
            return _conviction(name, scenario, outcome, number, shrunk)
    return None


def _conviction(name: str, scenario: Scenario, outcome: Outcome, runs: int, shrunk: bool) -> Conviction:
    """The failed run, reported as `rekindle chaos` does."""
    small = smallest(outcome) if outcome.violations and shrunk else outcome
    lines = tuple(Failure(small, repeats(name, small, scenario)).lines())
    return Conviction(name, runs, small, lines)


def edit(patch: pytest.MonkeyPatch, function: Callable[..., object], right: str, wrong: str) -> None:
    """Change one place in the source of a function, for everything that calls it."""
    assert isinstance(function, FunctionType)
    source = textwrap.dedent(inspect.getsource(function)).removeprefix("@property\n")
    assert source.count(right) == 1, f"{function.__qualname__} has {right!r} {source.count(right)} times"
    code = compile(
        source.replace(right, wrong),
        f"<{function.__qualname__}>",
        "exec",
        __future__.annotations.compiler_flag,
    )
    scope: dict[str, FunctionType] = {}
    exec(code, function.__globals__, scope)  # noqa: S102  # the source is ours
    patch.setattr(function, "__code__", scope[function.__name__].__code__)
