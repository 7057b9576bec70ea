"""Supervisors that were broken on purpose: chaos convicts each of them, and shows a short counterexample.

Each mutant runs the scenario that shows it within a few seeds, and every fortieth counterexample is made as
small as possible, which takes most of the time. `./scripts/chaos/mutants` searches for all of them from the
beginning, as `rekindle chaos --all` would, and shrinks all counterexamples.
"""

from __future__ import annotations

from itertools import islice

import pytest
from tests.chaos.mutants import decisions
from tests.chaos.mutants.catalogue import CATALOGUE
from tests.chaos.mutants.mutant import MOST_LINES, Mutant, all_runs, runs_of, search
from tests.chaos.sample_scenarios import ENDLESS, play

from rekindle.actors.simulation import Scenario, Step, dies_after, hangs, ignores_term, shrink
from rekindle.cli.chaos.seed_search import Narrowing, repeats, smallest

MOST_SEEDS = 100
SHRUNK_EVERY = 40


@pytest.mark.parametrize("mutant", CATALOGUE, ids=lambda mutant: mutant.name)
def test_a_planted_mistake_is_convicted_by_a_short_counterexample(
    mutant: Mutant, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant.plant(monkeypatch)
    is_sample = CATALOGUE.index(mutant) % SHRUNK_EVERY == 0
    convicted = search(runs_of(mutant.scenario, MOST_SEEDS, mutant.first_seed), shrunk=is_sample)
    assert convicted is not None
    assert len(convicted.report) <= MOST_LINES, "\n".join(convicted.report)


def test_no_mistake_is_found_where_none_is_planted() -> None:
    assert search(islice(all_runs(), 60)) is None


def world() -> Scenario:
    """Workers that crash, hang and are deaf, and thirty moves at random."""
    return (
        Scenario("mistakes", lasts_s=200)
        .worker("crashes", dies_after(4), restart=ENDLESS)
        .worker("deaf", hangs(after_s=9) | ignores_term(), restart=ENDLESS)
        .worker("fine")
        .worker("limited", dies_after(2))
        .at_random(30)
    )


def test_the_command_that_is_printed_repeats_the_smallest_run(monkeypatch: pytest.MonkeyPatch) -> None:
    decisions.forgets_the_generation_of_a_timer(monkeypatch)
    broken = next(outcome for seed in range(40) if (outcome := play(world(), seed)).violations)
    small = smallest(broken)
    words = repeats("world.toml", small, world()).split()
    options = dict(zip(words[3::2], words[4::2], strict=True))
    narrowing = Narrowing(
        tuple(int(number) for number in options["--only"].split(",")),
        tuple(options["--workers"].split(",")),
        float(options["--lasts"]) if "--lasts" in options else None,
    )
    part, steps = narrowing.of(world(), int(options["--seed"]))
    again = play(part, int(options["--seed"]), steps)
    assert again.history.encoded() == small.history.encoded()
    assert words[:3] == ["rekindle", "chaos", "world.toml"]


def test_nothing_is_left_of_a_run_that_fails_without_any_move() -> None:
    scenario = world()
    always, nothing = shrink(scenario, play(scenario).steps, lambda part, steps: True)
    assert (nothing, len(always.roles), always.lasts_s) == ((), 1, 1.0)


def test_shrinking_keeps_the_moves_that_are_needed_together() -> None:
    steps = play(world()).steps
    needed = {steps[3].number, steps[17].number}

    def still_fails(_part: Scenario, left: tuple[Step, ...]) -> bool:
        return needed <= {step.number for step in left}

    assert {step.number for step in shrink(world(), steps, still_fails)[1]} == needed
