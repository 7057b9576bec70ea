"""Which rulings a leader gives, the brakes, and what follows from a ruling for the workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.cluster.fleets import NOW_MS, fleet, node, placed, wish

from rekindle.actors.cluster.cluster_messages import ClusterRead
from rekindle.actors.cluster.facts.cases import (
    Case,
    Convicted,
    KeptRuling,
    Noticed,
    OnParole,
    Suspect,
    Trusted,
)
from rekindle.actors.cluster.facts.node_lives import Fault, NodeLife
from rekindle.actors.cluster.facts.nodes import Node, NodeState
from rekindle.actors.cluster.facts.wishes import Wish
from rekindle.actors.cluster.rules.fleet import Fleet
from rekindle.actors.cluster.rules.suspects import node_rulings
from rekindle.actors.cluster.rules.worker_moves import releases
from rekindle.actors.spec.deployment.place_policy import PlacePolicy

NOW_S = NOW_MS / 1000
NODES = ("k1", "k2", "k3", "k4", "k5")
GROUPS = ("api", "feed", "mail")
SSD = {"disk": "ssd"}


def a_life(worker: str, on: str, ago_s: float, *, lasted_s: float = 8.0, died: bool = True) -> NodeLife:
    ended = NOW_MS - round(ago_s * 1000)
    return NodeLife(
        node_id=on,
        component_id=worker,
        generation=round(ago_s),
        began_ms=ended - round(lasted_s * 1000),
        ended_ms=ended if died else None,
        fault=Fault.WORKER if died else None,
        died=died,
    )


def the_fleet(*bad: str, nodes: Sequence[Node] = (), wishes: Sequence[Wish] = (), **fields: Any) -> Fleet:
    """A copy of each group on each node."""
    machines = nodes or [node(name) for name in NODES]
    workers = wishes or [wish(f"{group}:{each.name}") for group in GROUPS for each in machines]
    on = {each.component_id: each.component_id.partition(":")[2] for each in workers}
    return fleet(machines, workers, on, **fields)


def read(found: Fleet, *bad: str, case: Case | None = None, of: str = "k1") -> ClusterRead:
    """What a leader reads while workers die on the bad nodes."""
    lives: list[NodeLife] = []
    for worker, assignment in found.assignments.items():
        where = str(assignment.node_id)
        if where in bad:
            lives += [a_life(worker, where, ago) for ago in (1.0, 10.0, 19.0)]
        lives.append(a_life(worker, where, 0.0, lasted_s=900.0 if where not in bad else 0.5, died=False))
    rulings = () if case is None else (KeptRuling(node_id=of, number=7, at_ms=1, case=case, why="why"),)
    return ClusterRead(
        number=1,
        now_ms=NOW_MS,
        nodes=tuple(found.nodes.values()),
        wishes=tuple(found.wishes.values()),
        assignments=tuple(found.assignments.values()),
        lives=tuple(lives),
        rulings=rulings,
        judged=True,
    )


def given(found: Fleet, *bad: str, mode: node_rulings.SuspectMode = "act", **case: Any) -> dict[str, Case]:
    """By node: the rulings of a leader."""
    return {each.node_id: each.case for each in node_rulings.given(read(found, *bad, **case), found, mode)}


def test_a_node_on_which_workers_die_becomes_a_suspect() -> None:
    found = the_fleet()
    (ruling,) = node_rulings.given(read(found, "k2"), found, "act")
    assert isinstance(ruling.case, Suspect)
    assert (ruling.node_id, ruling.number, ruling.case.witnesses) == ("k2", 1, ("api:k2", "feed:k2"))
    assert ruling.why == "3 of 3 workers died in 19 s (elsewhere 0 of 12)"


def test_the_next_ruling_has_the_next_number() -> None:
    found = the_fleet()
    (ruling,) = node_rulings.given(read(found, "k1", case=Trusted(1.0)), found, "act")
    assert ruling.number == 8


def test_where_all_die_nobody_is_a_suspect() -> None:
    assert given(the_fleet(), *NODES) == {}


def test_a_fleet_that_is_told_only_notices() -> None:
    assert given(the_fleet(), "k2", mode="tell") == {"k2": Noticed(NOW_S)}
    assert given(the_fleet(), "k2", mode="off") == {}


@pytest.mark.parametrize("mode", ["tell", "off"])
def test_a_node_that_is_held_is_released_when_suspects_are_not_acted_on(
    mode: node_rulings.SuspectMode,
) -> None:
    held = Convicted(NOW_S, NOW_S + 600, 30.0)
    assert given(the_fleet(), mode=mode, case=held) == {"k1": Trusted(NOW_S)}


# ── brakes ───────────────────────────────────────────────────────────────────────────────


def test_of_two_bad_nodes_one_is_held() -> None:
    assert len(given(the_fleet(), "k2", "k3")) == 1
    assert given(the_fleet(), "k2", case=Convicted(NOW_S, NOW_S + 600, 30.0)) == {}


def test_a_node_that_an_operator_holds_is_left_alone() -> None:
    machines = [node(name, NodeState.CORDONED if name == "k2" else NodeState.UP) for name in NODES]
    assert given(the_fleet(nodes=machines), "k2") == {}


def test_the_last_node_with_a_label_that_a_worker_needs_is_spared() -> None:
    machines = [node(name, labels=SSD if name == "k2" else None) for name in NODES]
    workers = [wish(f"{group}:{name}") for group in GROUPS for name in NODES]
    bound = wish("db:k3", PlacePolicy(labels=SSD))
    assert given(the_fleet(nodes=machines, wishes=[*workers, bound]), "k2") == {}
    others = [node(name, labels=SSD if name in ("k2", "k4") else None) for name in NODES]
    assert "k2" in given(the_fleet(nodes=others, wishes=[*workers, bound]), "k2")


@pytest.mark.parametrize(("min_healthy", "is_spared"), [(None, True), (5, True), (4, False)])
def test_a_node_without_which_a_group_has_too_few_copies_is_spared(
    min_healthy: int | None, is_spared: bool
) -> None:
    """The other nodes have room for no further copy."""
    alone = PlacePolicy(per_node=1)
    workers = [
        wish(f"{group}:{name}", alone if group == "api" else None, min_healthy=min_healthy)
        for group in (*GROUPS, "web")
        for name in NODES
    ]
    found = given(the_fleet(wishes=workers), "k2")
    assert ("k2" not in found) == is_spared


def test_a_worker_that_fits_nowhere_else_is_no_witness() -> None:
    workers = [
        wish(f"{group}:{name}", pinned=name if group == "api" else None)
        for group in (*GROUPS, "web")
        for name in NODES
    ]
    case = given(the_fleet(wishes=workers), "k2")["k2"]
    assert isinstance(case, Suspect)
    assert case.witnesses == ("feed:k2", "mail:k2")


def test_a_cluster_of_one_node_suspects_nothing() -> None:
    assert given(the_fleet(nodes=[node("k1")]), "k1") == {}


# ── what follows ─────────────────────────────────────────────────────────────────────────


def held(state: NodeState, **fields: Any) -> Fleet:
    return the_fleet(nodes=[node(name, state if name == "k2" else NodeState.UP) for name in NODES], **fields)


def released(found: Fleet) -> dict[str, str | None]:
    return {each.component_id: each.target for each in releases(found)}


def test_the_witnesses_leave_a_suspect_and_the_others_stay() -> None:
    found = held(NodeState.SUSPECT, witnesses={"api:k2": "k2", "feed:k2": "k2"})
    assert released(found) == {"api:k2": None, "feed:k2": None}


def test_a_convicted_node_is_drained() -> None:
    assert released(held(NodeState.CONVICTED)) == {"api:k2": None, "feed:k2": None, "mail:k2": None}


def test_a_paroled_node_gets_one_of_those_that_died_there_as_its_canary() -> None:
    found = held(NodeState.PAROLED, canaries={"k2": ("mail:k2", "api:k2")})
    away = {
        id_: replace(each, node_id="k3" if each.node_id == "k2" else each.node_id)
        for id_, each in found.assignments.items()
    }
    found = replace(found, assignments=away)
    assert released(found) == {"mail:k2": "k2"}
    waiting = {**away, "mail:k2": replace(away["mail:k2"], target="k2")}
    assert released(replace(found, assignments=waiting)) == {}


def test_a_paroled_node_with_its_canary_takes_no_other_worker() -> None:
    machines = [node("k1", NodeState.PAROLED)]
    workers = [wish("api:0"), wish("api:1")]
    assert placed(fleet(machines, workers)) == {"api:0": "k1"}
    assert placed(fleet(machines, workers, {"api:0": "k1"})) == {}


def test_a_parole_is_known_to_the_fleet_with_those_that_died() -> None:
    from rekindle.actors.cluster.rules.fleet import fleet as made

    found = the_fleet()
    paroled = made(read(found, case=OnParole(NOW_S, 30.0, 1, ("api:k1",)), of="k1"))
    suspected = made(read(found, case=Suspect(NOW_S, 1.0, ("api:k1",), 30.0, "why"), of="k1"))
    assert (dict(paroled.canaries), dict(suspected.witnesses)) == ({"k1": ("api:k1",)}, {"api:k1": "k1"})
