"""Runs a scenario under many seeds, and shrinks failures."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from rekindle.actors.simulation import Outcome, Scenario, Step, draw, run_virtual, shrink
from rekindle.persistence import MemoryStore

_TIDY_EVERY = 25
"""Actors refer to each other in cycles, which are collected between runs, never during one."""


@dataclass(frozen=True, slots=True)
class Narrowing:
    """A part of a scenario: only these steps, workers and seconds; None: all."""

    steps: tuple[int, ...] | None = None
    workers: tuple[str, ...] | None = None
    lasts_s: float | None = None

    def of(self, scenario: Scenario, seed: int) -> tuple[Scenario, tuple[Step, ...]]:
        """The part of a scenario, with its steps under a seed."""
        steps = draw(scenario, seed)
        if self.steps is not None:
            steps = tuple(step for step in steps if step.number in self.steps)
        if self.workers is not None:
            chosen = tuple(role for role in scenario.roles if role.id in self.workers)
            scenario = replace(scenario, roles=chosen, plan=(), chance=(), expected=())
        if self.lasts_s is not None:
            scenario = replace(scenario, lasts_s=self.lasts_s)
        return scenario, steps


def explore(scenario: Scenario, seeds: Iterable[int], narrowing: Narrowing) -> Iterator[Outcome]:
    """One outcome for each seed."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        for count, seed in enumerate(seeds, 1):
            part, steps = narrowing.of(scenario, seed)
            yield run_virtual(part, seed, store=MemoryStore(), steps=steps)
            if count % _TIDY_EVERY == 0:
                gc.collect()
    finally:
        if was_enabled:
            gc.enable()


def smallest(outcome: Outcome) -> Outcome:
    """The smallest run that violates the same rule."""
    rule = outcome.violations[0].rule
    latest = [outcome]

    def still_fails(scenario: Scenario, steps: tuple[Step, ...]) -> bool:
        again = run_virtual(scenario, outcome.seed, store=MemoryStore(), steps=steps)
        broken = any(each.rule == rule for each in again.violations)
        if broken:
            latest.append(again)
        return broken

    bare = replace(outcome.scenario, plan=(), chance=())
    scenario, steps = shrink(bare, outcome.steps, still_fails)
    matching = [each for each in latest if each.steps == steps and each.scenario == scenario]
    return matching[-1] if matching else latest[-1]


def repeats(file: str, outcome: Outcome, original: Scenario) -> str:
    """The command that repeats a run."""
    words = ["rekindle", "chaos", file, "--seed", str(outcome.seed)]
    if outcome.scenario.ids != original.ids or len(outcome.steps) != len(draw(original, outcome.seed)):
        words += ["--only", ",".join(str(step.number) for step in outcome.steps) or "none"]
    if outcome.scenario.ids != original.ids:
        words += ["--workers", ",".join(outcome.scenario.ids)]
    if outcome.scenario.lasts_s != original.lasts_s:
        words += ["--lasts", f"{outcome.scenario.lasts_s:.12g}"]
    return " ".join(words)
