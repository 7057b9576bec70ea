"""The head of Ray goes away and comes back: nothing stops or moves, and no worker is left without a node."""

from __future__ import annotations

import random

import pytest
from tests.chaos.cluster.clusters import SEEDS
from tests.chaos.cluster.ray_double import VirtualRay

from rekindle.actors.simulation.cluster.cluster_moves import (
    ClusterScenario,
    ClusterStep,
    CutNode,
    TakeEngineAway,
    draw_cluster_steps,
)
from rekindle.actors.simulation.cluster.cluster_run import ClusterRun

WORDS = (
    *("kill_node", "kill_agent", "freeze_agent", "pause_node", "cut_node", "cut_database"),
    *("stop_database", "drain", "move_worker"),
)


def a_run(scenario: ClusterScenario, seed: int) -> ClusterRun:
    """A run of a cluster whose engine is Ray."""
    chance = random.Random(seed)
    run = ClusterRun(scenario, seed, draw_cluster_steps(scenario, chance), chance)
    run.engine = VirtualRay(run)
    return run


def outages(chance: random.Random, lasts_s: float) -> tuple[ClusterStep, ...]:
    """A head that is away and back, many times: shorter and longer than the links and raylets live."""
    at, steps = chance.uniform(3.0, 10.0), list[ClusterStep]()
    while at < lasts_s:
        away_s = chance.choice((2.0, 6.0, 20.0, 70.0)) * chance.uniform(0.8, 1.2)
        steps.append(ClusterStep(at, TakeEngineAway(away_s)))
        at += away_s + chance.uniform(1.0, 30.0)
    return tuple(steps)


def often_away(seed: int) -> ClusterScenario:
    """Nodes with hardly more room than their workers need, and other faults beside the outages."""
    chance = random.Random(seed)
    nodes = chance.choice((2, 2, 3, 4))
    return ClusterScenario(
        f"head, seed {seed}",
        nodes=nodes,
        workers=2 * nodes - chance.choice((0, 0, 1)),
        slots=2,
        lasts_s=150.0,
        steps=outages(chance, 150.0),
        random_moves=chance.choice((0, 3, 8, 16)),
        words=WORDS,
    )


@pytest.mark.parametrize("seed", range(max(3, SEEDS // 8)))
def test_no_worker_is_left_without_a_node_by_a_head_that_is_away_and_back_many_times(seed: int) -> None:
    assert a_run(often_away(seed), seed).run().broken == ()


def test_a_head_that_is_away_for_long_and_back_stops_and_moves_nothing() -> None:
    steps = (ClusterStep(10.0, TakeEngineAway(120.0)),)
    scenario = ClusterScenario(nodes=2, slots=2, lasts_s=150.0, steps=steps, worker_life_s=None)
    assert a_run(scenario, 0).run().broken == ()


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_a_node_whose_ray_is_not_back_yet_takes_its_workers_back(seed: int) -> None:
    """It lost its lease while the head came back, and its workers fit nowhere else."""
    steps = (ClusterStep(10.0, TakeEngineAway(120.0)), ClusterStep(128.0, CutNode("n2", 6.0)))
    scenario = ClusterScenario(nodes=2, slots=2, lasts_s=136.0, steps=steps, worker_life_s=None)
    run = a_run(scenario, seed)
    assert run.run().broken == ()
    assert {each.node_id for each in run.database.tables.assignments.values()} == {"n1", "n2"}
