"""What an agent starts, stops and gives back."""

from __future__ import annotations

import pytest

from rekindle.actors.cluster.facts.tenures import Assignment, TenurePhase
from rekindle.actors.cluster.rules.holdings import Holdings, Todo, given_back, started, stopped, todo


def an_assignment(epoch: int = 5, phase: TenurePhase = TenurePhase.PLACED) -> Assignment:
    return Assignment(component_id="w", epoch=epoch, node_id="n", phase=phase)


RUNS = started(Holdings(), "w", 5)
GAVE_BACK = given_back(Holdings(), "w", 5)
PLACED, RELEASING, LATER = an_assignment(), an_assignment(phase=TenurePhase.RELEASING), an_assignment(6)


@pytest.mark.parametrize(
    ("holdings", "assigned", "may_run", "expected"),
    [
        (Holdings(), (PLACED,), True, Todo(start=(PLACED,))),
        (Holdings(), (PLACED,), False, Todo()),
        (Holdings(), (RELEASING,), True, Todo(give_back=(RELEASING,))),
        (Holdings(), (RELEASING,), False, Todo(give_back=(RELEASING,))),
        (Holdings(), (), True, Todo()),
        (RUNS, (PLACED,), True, Todo()),
        (RUNS, (RELEASING,), True, Todo(stop=(("w", 5),))),
        (RUNS, (LATER,), True, Todo(stop=(("w", 5),))),
        (RUNS, (), True, Todo(stop=(("w", 5),))),
        (GAVE_BACK, (PLACED,), True, Todo(give_back=(PLACED,))),
        (GAVE_BACK, (PLACED,), False, Todo(give_back=(PLACED,))),
        (GAVE_BACK, (RELEASING,), True, Todo(give_back=(RELEASING,))),
        (GAVE_BACK, (LATER,), True, Todo(start=(LATER,))),
    ],
)
def test_what_follows_from_the_assignments(
    holdings: Holdings, assigned: tuple[Assignment, ...], may_run: bool, expected: Todo
) -> None:
    assert todo(holdings, assigned, may_run) == expected


def test_a_worker_that_was_killed_because_the_right_ended_starts_again_under_the_same_epoch() -> None:
    assert todo(stopped(RUNS, "w", 5), (PLACED,), True).start == (PLACED,)


def test_the_end_of_an_older_epoch_does_not_end_the_one_that_runs() -> None:
    assert stopped(RUNS, "w", 4) == RUNS


def test_an_older_epoch_that_is_given_back_again_allows_no_later_one_to_start_twice() -> None:
    holdings = given_back(given_back(Holdings(), "w", 6), "w", 5)
    assert todo(holdings, (LATER,), True) == Todo(give_back=(LATER,))
