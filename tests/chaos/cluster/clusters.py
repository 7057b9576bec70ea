"""Scenarios of clusters, and the seeds that the tests run."""

from __future__ import annotations

import os
import random

from rekindle.actors.simulation.cluster.cluster_moves import ClusterScenario

SEEDS = int(os.environ.get("REKINDLE_CLUSTER_SEEDS", "25"))
"""How many runs the tests make; `scripts/chaos/clusters` makes more."""


def at_random(seed: int, moves: int = 10, words: tuple[str, ...] | None = None) -> ClusterScenario:
    """One to seven nodes, and moves that the seed draws."""
    chance = random.Random(seed)
    scenario = ClusterScenario(
        f"seed {seed}",
        nodes=chance.choice((1, 2, 3, 3, 4, 5, 5, 7)),
        random_moves=moves,
        lasts_s=60.0,
        all_lead=seed % 4 == 0,
        everywhere=seed % 3,
    )
    if words is None:
        return scenario
    return ClusterScenario(
        scenario.name, nodes=scenario.nodes, random_moves=moves, words=words, all_lead=scenario.all_lead
    )
