"""The shipped Agent and Coordinator on N virtual nodes: no rule is broken, and every run repeats."""

from __future__ import annotations

import random

import pytest
from tests.chaos.cluster.clusters import SEEDS, at_random

from rekindle.actors.cluster.cluster_messages import SetNodeState
from rekindle.actors.cluster.facts.nodes import NodeState
from rekindle.actors.simulation.cluster import virtual_database
from rekindle.actors.simulation.cluster.cluster_moves import (
    ClusterMove,
    ClusterScenario,
    ClusterStep,
    CutDatabase,
    CutNode,
    Drain,
    FreezeAgent,
    KillAgent,
    KillNode,
    MoveWorker,
    PauseNode,
    SetDatabaseClock,
    Split,
    StopDatabase,
    TakeEngineAway,
)
from rekindle.actors.simulation.cluster.cluster_rules import Began, Freed, Placed, ProcessEnd, ProcessEnded
from rekindle.actors.simulation.cluster.cluster_run import ClusterOutcome, ClusterRun, run_cluster


def after(at: float, *moves: ClusterMove, nodes: int = 3, lasts_s: float = 40.0) -> ClusterOutcome:
    """A run in which these moves are made, and no worker crashes."""
    steps = tuple(ClusterStep(at, move) for move in moves)
    scenario = ClusterScenario(nodes=nodes, lasts_s=lasts_s, steps=steps, worker_life_s=None)
    outcome = run_cluster(scenario)
    assert outcome.broken == ()
    return outcome


def ends(outcome: ClusterOutcome, node: str = "n1", since: float = 0.0) -> list[tuple[float, ProcessEnd]]:
    """When and how processes of a node ended."""
    found = [each for each in outcome.entries if isinstance(each, ProcessEnded)]
    return [(each.at, each.how) for each in found if each.node == node and each.at >= since]


def starts(outcome: ClusterOutcome, since: float) -> list[Began]:
    """The processes that began after a time."""
    return [each for each in outcome.entries if isinstance(each, Began) and each.at >= since]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_rule_is_broken_by_moves_at_random(seed: int) -> None:
    assert run_cluster(at_random(seed), seed).broken == ()


def test_a_run_repeats_exactly_by_its_seed() -> None:
    scenario = at_random(7)
    assert run_cluster(scenario, 7).entries == run_cluster(scenario, 7).entries
    assert run_cluster(scenario, 7).entries != run_cluster(scenario, 8).entries


@pytest.mark.parametrize("node", ["n1", "n2", "n3"])
def test_the_workers_of_a_node_that_was_powered_off_run_elsewhere_within_five_seconds(node: str) -> None:
    outcome = after(10.0, KillNode(node, 20.0))
    lost = [each.worker for each in outcome.entries if isinstance(each, Freed) and each.why == "lost"]
    moved = [each for each in starts(outcome, 10.0) if each.worker in lost and each.at < 30.0]
    assert lost
    assert {each.worker for each in moved} == set(lost)
    assert max(each.at for each in moved) <= 15.0


def test_the_workers_of_a_node_that_was_cut_off_are_dead_before_they_run_elsewhere() -> None:
    outcome = after(10.0, CutNode("n1", 20.0))
    dead = [at for at, how in ends(outcome, since=10.0) if how is ProcessEnd.FENCED]
    assert dead
    assert max(dead) <= 13.0
    assert min(each.at for each in starts(outcome, 10.0)) > max(dead)


def test_a_frozen_agent_s_workers_are_killed_by_its_guardian_before_the_lease_ends() -> None:
    outcome = after(10.0, FreezeAgent("n1", 15.0))
    assert [how for at, how in ends(outcome, since=10.0) if at <= 13.0] == [
        ProcessEnd.FENCED,
        ProcessEnd.FENCED,
    ]


def test_an_agent_that_was_killed_comes_back_to_the_same_workers_under_the_same_epochs() -> None:
    outcome = after(10.0, KillAgent("n1", 1.0))
    assert [each for each in outcome.entries if isinstance(each, Placed | Freed) and each.at > 10.0] == []
    assert [each.node for each in starts(outcome, 10.0)] == ["n1", "n1"]


@pytest.mark.parametrize("after_s", [1.05, 1.25, 1.45])
def test_a_node_that_dies_before_its_second_renewal_loses_its_workers_to_the_others(after_s: float) -> None:
    steps = (ClusterStep(10.0, KillAgent("n1", 1.0)), ClusterStep(10.0 + after_s, KillNode("n1", 20.0)))
    outcome = run_cluster(ClusterScenario(nodes=3, lasts_s=40.0, steps=steps, worker_life_s=None))
    assert outcome.broken == ()
    moved = [each for each in starts(outcome, 12.0) if each.node != "n1" and each.at < 20.0]
    assert {each.worker for each in moved} == {"w:0", "w:3"}


def test_a_machine_that_was_paused_finds_its_workers_elsewhere() -> None:
    outcome = after(10.0, PauseNode("n1", 15.0))
    assert {how for _, how in ends(outcome, since=10.0)} == {ProcessEnd.FENCED}


@pytest.mark.parametrize("nodes", [1, 2, 3, 5])
@pytest.mark.parametrize("move", [StopDatabase(60.0), TakeEngineAway(60.0)])
def test_an_outage_of_the_database_or_of_the_engine_stops_and_moves_nothing(
    move: ClusterMove, nodes: int
) -> None:
    outcome = after(10.0, move, nodes=nodes, lasts_s=80.0)
    assert starts(outcome, 10.0) == []


def test_the_majority_goes_on_without_the_database_while_one_node_is_off() -> None:
    outcome = after(20.0, KillNode("n1", 60.0), StopDatabase(40.0), nodes=3, lasts_s=90.0)
    others = [*ends(outcome, "n2"), *ends(outcome, "n3")]
    assert others == []


def test_a_node_that_alone_is_cut_off_from_the_database_stops() -> None:
    outcome = after(10.0, CutDatabase("n1", 20.0))
    assert {how for at, how in ends(outcome, since=10.0) if at < 13.0} == {ProcessEnd.FENCED}


def test_the_smaller_part_of_a_split_stops_and_the_larger_one_takes_over() -> None:
    outcome = after(10.0, Split(("n1", "n2"), 20.0), nodes=5)
    taken = {each.node for each in starts(outcome, 10.0) if each.at < 30.0}
    assert taken
    assert taken <= {"n3", "n4", "n5"}


def test_a_database_whose_clock_jumps_an_hour_ahead_takes_no_worker_from_a_living_node() -> None:
    outcome = after(10.0, SetDatabaseClock(3600.0))
    assert [each for each in outcome.entries if isinstance(each, Freed)] == []


def test_a_drained_node_ends_empty_and_each_worker_starts_once_elsewhere() -> None:
    outcome = after(10.0, Drain("n1", 15.0), lasts_s=24.0)
    began = [each.worker for each in starts(outcome, 10.0)]
    assert began
    assert sorted(began) == sorted(set(began))
    assert {each.node for each in starts(outcome, 10.0)} <= {"n2", "n3"}


def test_a_worker_moves_to_the_node_that_an_operator_chose() -> None:
    outcome = after(10.0, MoveWorker("w:0", "n3"))
    assert [each.node for each in outcome.entries if isinstance(each, Placed) and each.worker == "w:0"][
        -1
    ] == "n3"


def test_a_worker_of_every_node_goes_on_where_the_lease_is_lost_and_returns_with_a_node() -> None:
    steps = (ClusterStep(10.0, CutNode("n1", 15.0)), ClusterStep(30.0, KillNode("n2", 5.0)))
    outcome = run_cluster(
        ClusterScenario(nodes=3, workers=0, everywhere=1, lasts_s=50.0, steps=steps, worker_life_s=None)
    )
    assert outcome.broken == ()
    assert [at for at, _ in ends(outcome, "n1") if at < 25.0] == []
    assert [each.worker for each in starts(outcome, 35.0)] == ["every:0:n2"]


def test_a_node_that_has_left_does_not_join_again_by_itself() -> None:
    scenario = ClusterScenario(nodes=3, lasts_s=40.0, steps=(ClusterStep(10.0, Drain("n1", 60.0)),))
    run = ClusterRun(scenario, 0, scenario.steps, random.Random(0))
    leave = SetNodeState(
        node_id="n1", state=NodeState.LEFT, reason="", by="ann", only_from=(NodeState.DRAINING,)
    )
    run.at(25.0, lambda: run.order(leave))
    outcome = run.run()
    assert outcome.broken == ()
    assert run.database.tables.nodes["n1"].state is NodeState.LEFT
    assert [each for each in starts(outcome, 25.0) if each.node == "n1"] == []


@pytest.mark.parametrize("seed", range(5))
def test_a_join_that_a_cut_cable_held_up_ends_no_later_life(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(virtual_database, "RESENT_SHARE", 1.0)
    moves = (CutDatabase("n1", 8.0), KillAgent("n1", 0.1))
    steps = (*(ClusterStep(10.0, move) for move in moves), ClusterStep(17.9, KillAgent("n1", 0.15)))
    scenario = ClusterScenario(nodes=1, lasts_s=40.0, steps=steps, worker_life_s=None)
    outcome = run_cluster(scenario, seed)
    assert outcome.broken == ()
    assert [at for at, _ in ends(outcome) if at > 18.0] == []


def test_an_agent_that_dies_with_its_machine_paused_leaves_no_process_when_the_machine_goes_on() -> None:
    steps = (ClusterStep(5.3, PauseNode("n2", 13.4)), ClusterStep(7.3, KillAgent("n2", 0.5)))
    scenario = ClusterScenario(nodes=3, everywhere=1, lasts_s=40.0, steps=steps, worker_life_s=None)
    assert run_cluster(scenario).broken == ()


def test_a_node_that_was_drained_and_lost_takes_workers_again_when_it_was_uncordoned() -> None:
    moves = ((10.0, CutNode("n1", 6.0)), (11.5, Drain("n1", 3.5)), (20.0, KillNode("n1", 14.0)))
    steps = tuple(ClusterStep(at, move) for at, move in moves)
    scenario = ClusterScenario(nodes=3, everywhere=1, lasts_s=30.0, steps=steps, worker_life_s=None)
    assert run_cluster(scenario).broken == ()
