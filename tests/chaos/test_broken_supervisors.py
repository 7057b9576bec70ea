"""Supervisors that were broken on purpose: chaos finds each, and makes what it found small."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import replace as changed
from typing import Any

import pytest
from msgspec.structs import replace
from tests.chaos.sample_scenarios import ENDLESS, play

from rekindle.actors import supervision
from rekindle.actors.persistence_actor import PersistenceActor
from rekindle.actors.rules import restarts, stop_ladder
from rekindle.actors.simulation import (
    Outcome,
    Scenario,
    Step,
    dies_after,
    hangs,
    ignores_term,
    shrink,
)
from rekindle.actors.spec.stop_urgency import Urgency
from rekindle.actors.supervision import backoff, on_command, on_death, on_process
from rekindle.actors.supervision.worker import BackingOff, Rest, Worker, World
from rekindle.actors.supervision.worker import Step as WorkerStep
from rekindle.cli.chaos.seed_search import Narrowing, repeats, smallest

SEEDS = 40


def forgets_the_generation(patch: pytest.MonkeyPatch) -> None:
    """T8: any timer ends any wait, whichever incarnation it belongs to."""

    def elapsed(worker: Worker, _timer: object, world: World) -> WorkerStep:
        if not isinstance(worker.phase, BackingOff):
            return WorkerStep(worker)
        return backoff.proceed(worker, replace(worker.phase, elapsed=True), world)

    patch.setattr(supervision, "backoff_elapsed", elapsed)


def starts_beside_the_old_one(patch: pytest.MonkeyPatch) -> None:
    """T16: a worker that is taken for dead is replaced while it still runs."""
    right = backoff.proceed

    def proceed(worker: Worker, phase: BackingOff, world: World) -> WorkerStep:
        return right(replace(worker, lingering=None), phase, world)

    for module in (backoff, on_process):
        patch.setattr(module, "proceed", proceed)

    def advance(state: Any, trigger: Any, terms: Any) -> Any:
        if isinstance(trigger, stop_ladder.Start) and not isinstance(state, stop_ladder.Spawning):
            spawning = stop_ladder.Spawning(trigger.generation)
            return stop_ladder.Step(spawning, (stop_ladder.Spawn(trigger.generation),))
        return stop_ladder.advance(state, trigger, terms)

    patch.setattr("rekindle.actors.worker_proxy.advance", advance)


def restarts_what_was_stopped(patch: pytest.MonkeyPatch) -> None:
    """T9: a stop during the delay is answered, and a second later the worker runs."""
    right = supervision.stop

    def stop(worker: Worker, urgency: Urgency = Urgency.GRACEFUL, rest: Rest = Rest.STOPPED) -> WorkerStep:
        if isinstance(worker.phase, BackingOff):
            return WorkerStep(worker, on_command._rested(worker, urgency))
        return right(worker, urgency, rest)

    for module in (supervision, on_command):
        patch.setattr(module, "stop", stop)


def loses_what_it_could_not_write(patch: pytest.MonkeyPatch) -> None:
    """A record that the store refused is gone."""
    right = PersistenceActor._failed

    def failed(self: PersistenceActor, error: Any) -> None:
        self._in_flight = None
        right(self, error)

    patch.setattr(PersistenceActor, "_failed", failed)


def counts_before_it_decides(patch: pytest.MonkeyPatch) -> None:
    """One restart more than the policy allows."""
    right = restarts.decide

    def decide(policy: Any, state: Any, death: Any, around: Any) -> Any:
        return right(policy, replace(state, streak_count=max(0, state.streak_count - 1)), death, around)

    patch.setattr(on_death, "decide", decide)


@dataclass(frozen=True)
class Broken:
    """A mistake, and the rule that it breaks."""

    make: Callable[[pytest.MonkeyPatch], None]
    rule: str
    moves: int
    """The most moves that are needed to show it."""


BROKEN = [
    Broken(forgets_the_generation, "no restart before its delay is over", 2),
    Broken(starts_beside_the_old_one, "lives never overlap", 1),
    Broken(restarts_what_was_stopped, "no start while stopping, paused or failed", 2),
    Broken(loses_what_it_could_not_write, "nothing decided is lost", 2),
    Broken(counts_before_it_decides, "counters equal the history", 0),
]


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


def found(rule: str) -> Outcome:
    """The first run in which this rule is broken."""
    for seed in range(SEEDS):
        outcome = play(world(), seed)
        if any(violation.rule == rule for violation in outcome.violations):
            return outcome
    raise AssertionError(f"nobody noticed in {SEEDS} runs")


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.make.__name__)
def test_a_broken_supervisor_is_found_and_what_shows_it_is_small(
    broken: Broken, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken.make(monkeypatch)
    outcome = found(broken.rule)
    outcome = only(outcome, broken.rule)
    small = smallest(outcome)
    assert {violation.rule for violation in small.violations} >= {broken.rule}
    assert len(small.steps) <= broken.moves
    assert len(small.scenario.roles) == 1
    assert len(small.history) < len(outcome.history)


def only(outcome: Outcome, rule: str) -> Outcome:
    """The outcome with this rule's violations first."""
    ordered = sorted(outcome.violations, key=lambda violation: violation.rule != rule)
    return changed(outcome, violations=tuple(ordered))


def test_the_command_that_is_printed_repeats_the_smallest_run(monkeypatch: pytest.MonkeyPatch) -> None:
    forgets_the_generation(monkeypatch)
    small = smallest(
        only(found("no restart before its delay is over"), "no restart before its delay is over")
    )
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
