"""Clusters that were broken on purpose: chaos convicts each of them within a few seeds.

`./scripts/chaos/clusters` makes thousands of runs, and searches for each mistake again.
"""

from __future__ import annotations

import random

import pytest
from tests.chaos.cluster.cluster_mutants import CLUSTER_MUTANTS, ClusterMutant, convicted

from rekindle.actors.simulation.cluster.cluster_run import run_cluster

MOST_SEEDS = 100
CLEAN_SEEDS = 3


@pytest.mark.parametrize("mutant", CLUSTER_MUTANTS, ids=lambda mutant: mutant.name)
def test_a_missing_rule_is_convicted(mutant: ClusterMutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant.plant(monkeypatch)
    assert convicted(mutant, MOST_SEEDS) is not None


@pytest.mark.parametrize("mutant", CLUSTER_MUTANTS, ids=lambda mutant: mutant.name)
def test_where_a_rule_matters_most_nothing_is_broken_with_it(mutant: ClusterMutant) -> None:
    runs = (run_cluster(mutant.aim(seed, random.Random(seed)), seed) for seed in range(CLEAN_SEEDS))
    assert [broken for outcome in runs for broken in outcome.broken] == []
