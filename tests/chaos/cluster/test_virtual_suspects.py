"""The shipped Coordinator judges virtual nodes: a bad one is convicted, an innocent one never is."""

from __future__ import annotations

import os

import pytest
from tests.chaos.cluster.suspect_scenarios import (
    BAD_NODE,
    INNOCENT,
    SUSPECT_MUTANTS,
    SuspectMutant,
    rulings,
    shown,
)

from rekindle.actors.simulation.cluster.cluster_run import run_cluster

RUNS = int(os.environ.get("REKINDLE_SUSPECT_RUNS", "0"))
"""How many runs of each fleet; without a word one."""


def test_a_bad_node_is_suspected_and_convicted_and_no_other_is() -> None:
    outcome = run_cluster(BAD_NODE, 0)
    assert outcome.broken == ()
    found = rulings(outcome)
    assert [(node, kind) for _, node, kind in found] == [("n2", "suspect"), ("n2", "convicted")]
    assert found[-1][0] <= 20.0 + 75.0


@pytest.mark.parametrize("name", INNOCENT)
def test_a_fleet_without_a_bad_node_convicts_none(name: str) -> None:
    for seed in range(RUNS or 1):
        outcome = run_cluster(INNOCENT[name], seed)
        assert outcome.broken == ()
        assert "convicted" not in {kind for _, _, kind in rulings(outcome)}


@pytest.mark.parametrize("mutant", SUSPECT_MUTANTS, ids=lambda mutant: mutant.name)
def test_a_missing_brake_is_convicted(mutant: SuspectMutant, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not shown(mutant, 1)
    mutant.plant(monkeypatch)
    assert shown(mutant, 5)
