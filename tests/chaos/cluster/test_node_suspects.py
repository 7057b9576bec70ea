"""A node on which workers die is convicted soon, and a node is never convicted for what its workers do.

REKINDLE_SUSPECT_RUNS sets the number of runs of each fleet.
"""

from __future__ import annotations

import os
from statistics import median

import pytest
from tests.chaos.cluster.suspect_fleets import INNOCENT, NODES, SuspectFleet, Verdicts, bad_node

from rekindle.actors.cluster.rules.suspects.suspicion import LARGEST_SHARE

RUNS = int(os.environ.get("REKINDLE_SUSPECT_RUNS", "0"))
GOES_BAD_S = 60


def verdicts_of(name_or_life: str | float, runs: int, *, every_second_group: bool = False) -> list[Verdicts]:
    if isinstance(name_or_life, str):
        rate = INNOCENT[name_or_life]
    else:
        rate = bad_node(name_or_life, every_second_group)
    return [SuspectFleet(rate, seed).run(900 if not RUNS else 1800) for seed in range(RUNS or runs)]


def times(verdicts: list[Verdicts]) -> list[float]:
    """How long it took until the bad node was convicted first."""
    return [
        next((at for at, node in each.convicted if node == "k0"), float("inf")) - GOES_BAD_S
        for each in verdicts
    ]


@pytest.mark.parametrize(
    ("life_s", "every_second_group", "bar_s"), [(8.0, False, 60.0), (60.0, False, 300.0), (8.0, True, 600.0)]
)
def test_a_bad_node_is_convicted_in_time(life_s: float, every_second_group: bool, bar_s: float) -> None:
    verdicts = verdicts_of(life_s, 15, every_second_group=every_second_group)
    assert median(times(verdicts)) <= bar_s
    assert [node for each in verdicts for _, node in each.convicted if node != "k0"] == []


def test_the_deaths_that_a_bad_node_caused_are_refunded() -> None:
    assert all(each.refunds >= 6 for each in verdicts_of(8.0, 5))


@pytest.mark.parametrize("fleet", INNOCENT)
def test_no_node_is_convicted_where_none_is_at_fault(fleet: str) -> None:
    assert [each.convicted for each in verdicts_of(fleet, 2) if each.convicted] == []


def test_never_more_than_a_fifth_of_the_nodes_is_held() -> None:
    most = max(1, NODES // LARGEST_SHARE)
    assert all(each.most_held <= most for each in verdicts_of(8.0, 5))
