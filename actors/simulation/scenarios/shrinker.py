"""Pure: finds the smallest scenario that still fails in the same way.

It leaves out moves, then workers, then the time after the failure, and runs the scenario again each
time. That works because runs are repeatable: the remaining moves have the same effect as before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from .moves import worker_of
from .scenario import Scenario, Step

T = TypeVar("T")

StillFails = Callable[[Scenario, tuple[Step, ...]], bool]
"""Runs a smaller scenario, and returns whether it fails in the same way."""


@dataclass(slots=True)
class _Budget:
    """How many more runs are allowed."""

    left: int

    def spend(self) -> bool:
        self.left -= 1
        return self.left >= 0


def shrink(
    scenario: Scenario, steps: tuple[Step, ...], still_fails: StillFails, *, most_runs: int = 400
) -> tuple[Scenario, tuple[Step, ...]]:
    """The smallest scenario that was found, with its steps."""
    budget = _Budget(most_runs)
    scenario = replace(scenario, expected=())
    steps = fewest(steps, lambda left: still_fails(scenario, tuple(left)), budget.spend)
    scenario = _fewer_workers(scenario, steps, still_fails, budget)
    steps = fewest(steps, lambda left: still_fails(scenario, tuple(left)), budget.spend)
    return _shorter(scenario, steps, still_fails, budget), steps


def fewest(
    items: Sequence[T], still_fails: Callable[[Sequence[T]], bool], spend: Callable[[], bool]
) -> tuple[T, ...]:
    """As few of the items as still fail: half of them are left out, then quarters, then single ones."""
    left = tuple(items)
    size = max(1, len(left) // 2)
    while left and size:
        start = 0
        shrunk = False
        while start < len(left):
            without = (*left[:start], *left[start + size :])
            if not spend():
                return left
            if still_fails(without):
                left, shrunk = without, True
            else:
                start += size
        size = size if shrunk and size == 1 else size // 2
    return left


def _fewer_workers(
    scenario: Scenario, steps: tuple[Step, ...], still_fails: StillFails, budget: _Budget
) -> Scenario:
    needed = {worker for step in steps for worker in (worker_of(step.move), step.of) if worker is not None}
    needed |= {other for role in scenario.roles for other in role.spec.after}
    for role in scenario.roles:
        if role.id in needed or len(scenario.roles) == 1:
            continue
        smaller = replace(scenario, roles=tuple(each for each in scenario.roles if each is not role))
        if budget.spend() and still_fails(smaller, steps):
            scenario = smaller
    return scenario


def _shorter(
    scenario: Scenario, steps: tuple[Step, ...], still_fails: StillFails, budget: _Budget
) -> Scenario:
    last = max((step.at for step in steps), default=0.0)
    for lasts_s in sorted({last + 1.0, last + 10.0, last + 60.0, last + 300.0}):
        shorter = replace(scenario, lasts_s=round(lasts_s, 3))  # as the command that repeats it has it
        if lasts_s < scenario.lasts_s and budget.spend() and still_fails(shorter, steps):
            return shorter
    return scenario
