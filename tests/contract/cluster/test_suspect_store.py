"""The history that nodes ship and the rulings on them, in a real PostgreSQL and in virtual time."""

from __future__ import annotations

import time
from typing import Any

import pytest
from msgspec.structs import replace
from tests.contract.cluster.test_cluster_store import Cluster, MemoryCluster, cluster, expire, wait_until

from rekindle.actors.cluster.cluster_messages import GiveBack, KeepTenure, ReadCluster, SetNodeState
from rekindle.actors.cluster.courier_messages import JournalKept, ShipJournal
from rekindle.actors.cluster.facts.cases import (
    Case,
    Convicted,
    GiveRuling,
    OnParole,
    Overrule,
    Suspect,
    Trusted,
)
from rekindle.actors.cluster.facts.node_lives import Fault, NodeLife
from rekindle.actors.cluster.facts.nodes import NodeState
from rekindle.actors.cluster.facts.tenures import Tenure
from rekindle.actors.cluster.rules.tenure_counters import carried
from rekindle.actors.facts.records import EventRecord

__all__ = ["cluster"]
W = "worker:web:0"


def now_s() -> float:
    return time.time()


def now_ms() -> int:
    return round(now_s() * 1000)


def a_life(generation: int, *, epoch: int, died: bool = True, ago_s: float = 1.0) -> NodeLife:
    ended = now_ms() - round(ago_s * 1000)
    return NodeLife(
        node_id="id-k1",
        component_id=W,
        generation=generation,
        epoch=epoch,
        began_ms=ended - 5000,
        ended_ms=ended if died else None,
        cause="exited" if died else "",
        fault=Fault.WORKER if died else None,
        counted=died,
        died=died,
    )


def ship(cluster: Cluster, *lives: NodeLife, first: int = 1) -> int:
    records = tuple(
        EventRecord(id=number, at_wall_ms=now_ms(), type="worker_died", component_id=W, payload="{}")
        for number in range(first, first + max(1, len(lives)))
    )
    page = ShipJournal(node_id="id-k1", records=records, lives=lives, keep_days=30.0)
    kept: JournalKept = cluster.ask(cluster.store.ship, page)
    return kept.up_to


def rule(cluster: Cluster, number: int, case: Case) -> bool:
    return cluster.change(GiveRuling(node_id="id-k1", number=number, case=case, why="why")).applied


def state(cluster: Cluster) -> NodeState:
    return next(node.state for node in cluster.read().nodes if node.name == "k1")


def judged(cluster: Cluster) -> Any:
    return cluster.ask(cluster.store.read, ReadCluster(2, judges=True))


def parole(cluster: Cluster) -> None:
    cases: tuple[Case, ...] = SUSPECT, convicted(), OnParole(now_s(), 30.0, 1)
    for number, case in enumerate(cases, 1):
        rule(cluster, number, case)


@pytest.fixture
def placed(cluster: Cluster) -> tuple[Cluster, int]:
    """A worker on k1, and its epoch."""
    cluster.up("k1", "k2")
    cluster.wish()
    epoch = cluster.place("k1").assignments[0].epoch
    cluster.change(KeepTenure(Tenure(component_id=W, epoch=epoch, node_id="id-k1", restarts=4, streak=4)))
    return cluster, epoch


SUSPECT = Suspect(0.0, 0.0, (W, "w"), 30.0, "why")


def convicted() -> Convicted:
    return Convicted(now_s(), now_s() + 600, 30.0, guilty_since=now_s() - 60)


def test_the_store_says_how_far_it_has_the_journal_and_takes_a_page_twice(
    placed: tuple[Cluster, int],
) -> None:
    cluster, epoch = placed
    assert cluster.ask(cluster.store.shipped_up_to, "id-k1") == JournalKept(0)
    lives = (a_life(1, epoch=epoch), a_life(2, epoch=epoch, died=False))
    assert [ship(cluster, *lives), ship(cluster, *lives)] == [2, 2]
    assert cluster.ask(cluster.store.shipped_up_to, "id-k1") == JournalKept(2)
    found = judged(cluster).lives
    assert [(life.generation, life.died, life.fault) for life in found] == [
        (1, True, Fault.WORKER),
        (2, False, None),
    ]


def test_news_of_the_end_of_a_life_keep_its_beginning(placed: tuple[Cluster, int]) -> None:
    cluster, epoch = placed
    alive = a_life(1, epoch=epoch, died=False, ago_s=20.0)
    ship(cluster, alive)
    ship(cluster, replace(a_life(1, epoch=epoch), began_ms=now_ms()), first=2)
    (life,) = judged(cluster).lives
    assert abs(life.began_ms - alive.began_ms) < 2000
    assert life.died


def test_a_process_of_a_worker_that_was_given_back_is_not_taken_for_alive(
    placed: tuple[Cluster, int],
) -> None:
    cluster, epoch = placed
    ship(cluster, a_life(1, epoch=epoch, died=False))
    assert judged(cluster).lives[0].ended_ms is None
    tenure = Tenure(component_id=W, epoch=epoch, node_id="id-k1", ended_ms=now_ms())
    cluster.change(GiveBack(node_id="id-k1", component_id=W, epoch=epoch, tenure=tenure, reason="moved"))
    assert judged(cluster).lives[0].ended_ms is not None


def test_a_suspicion_begins_once_and_only_on_a_node_that_is_up(placed: tuple[Cluster, int]) -> None:
    cluster, _ = placed
    assert rule(cluster, 1, SUSPECT)
    assert not rule(cluster, 1, SUSPECT)  # another leader
    assert state(cluster) is NodeState.SUSPECT
    assert [each.case for each in cluster.read().rulings] == [SUSPECT]
    assert rule(cluster, 2, Trusted(5.0))
    assert state(cluster) is NodeState.UP
    cordon = SetNodeState(
        node_id="id-k1", state=NodeState.CORDONED, reason="", by="ann", only_from=(NodeState.UP,)
    )
    cluster.change(cordon)
    assert not rule(cluster, 3, SUSPECT)
    assert state(cluster) is NodeState.CORDONED


def test_a_ruling_leaves_the_drain_of_an_operator_alone(placed: tuple[Cluster, int]) -> None:
    cluster, _ = placed
    rule(cluster, 1, SUSPECT)
    drain = SetNodeState(
        node_id="id-k1", state=NodeState.DRAINING, reason="", by="ann", only_from=(NodeState.SUSPECT,)
    )
    assert cluster.change(drain).applied
    assert rule(cluster, 2, Trusted(5.0))
    assert state(cluster) is NodeState.DRAINING


def test_a_node_that_was_lost_returns_to_the_state_of_its_case(placed: tuple[Cluster, int]) -> None:
    cluster, _ = placed
    rule(cluster, 1, SUSPECT)
    expire(cluster, "k1")
    for number in (2, 3):
        cluster.renew("k2", members=("k1", "k2"), number=number)
    wait_until(lambda: cluster.declare_lost("k1", renewals=cluster.read().nodes[0].renewals))
    assert rule(cluster, 2, convicted())
    assert cluster.join("k1", life="2").node.state is NodeState.CONVICTED


def test_a_conviction_refunds_the_deaths_and_lifts_the_failure(placed: tuple[Cluster, int]) -> None:
    cluster, epoch = placed
    ship(cluster, a_life(1, epoch=epoch, ago_s=500.0), a_life(2, epoch=epoch), a_life(3, epoch=epoch))
    failed = Tenure(
        component_id=W, epoch=epoch, node_id="id-k1", restarts=4, streak=4, noted=9, failed_at_wall_ms=5
    )
    cluster.change(KeepTenure(failed))
    rule(cluster, 1, SUSPECT)
    assert rule(cluster, 2, convicted())
    (tenure,) = cluster.read().tenures
    assert (tenure.refunded, tenure.restarts) == (2, 4)  # the first one died long before
    known = carried([tenure])
    assert (known.restart_count, known.streak_count, known.failed_at_wall_ms) == (2, 2, None)


def test_deaths_that_are_shipped_late_are_refunded_too_and_once(placed: tuple[Cluster, int]) -> None:
    cluster, epoch = placed
    rule(cluster, 1, SUSPECT)
    rule(cluster, 2, convicted())
    for _ in range(2):
        ship(cluster, a_life(1, epoch=epoch), a_life(2, epoch=epoch))
    assert cluster.read().tenures[0].refunded == 2
    # Its author knows nothing of the refund.
    cluster.change(KeepTenure(Tenure(component_id=W, epoch=epoch, node_id="id-k1", restarts=5, noted=20)))
    assert (cluster.read().tenures[0].refunded, cluster.read().tenures[0].restarts) == (2, 5)


def test_after_the_parole_deaths_count_again(placed: tuple[Cluster, int]) -> None:
    cluster, epoch = placed
    parole(cluster)
    ship(cluster, a_life(1, epoch=epoch, ago_s=-5.0))
    assert cluster.read().tenures[0].refunded == 0


def test_a_paroled_node_takes_one_worker(cluster: Cluster) -> None:
    cluster.up("k1", "k2")
    for id_ in (W, "worker:web:1"):
        cluster.wish(id_)
    parole(cluster)
    assert state(cluster) is NodeState.PAROLED
    assert cluster.place("k1").applied
    assert not cluster.place("k1", component_id="worker:web:1").applied


def test_an_operator_overrules_whatever_the_case_is_and_it_is_remembered(
    placed: tuple[Cluster, int],
) -> None:
    cluster, _ = placed
    rule(cluster, 1, SUSPECT)
    assert cluster.change(Overrule(node_id="id-k1", by="ann")).applied
    (ruling,) = cluster.read().rulings
    assert (ruling.number, ruling.given_by, state(cluster)) == (2, "ann", NodeState.UP)
    assert isinstance(ruling.case, Trusted)
    assert ruling.case.since > now_s() + 600
    assert not cluster.change(Overrule(node_id="nobody", by="ann")).applied


def test_history_that_is_too_old_is_forgotten(placed: tuple[Cluster, int]) -> None:
    cluster, epoch = placed
    if isinstance(cluster.store, MemoryCluster):
        pytest.skip("a virtual database forgets nothing")
    ship(cluster, a_life(1, epoch=epoch, ago_s=40 * 86_400.0), a_life(2, epoch=epoch))
    ship(cluster, a_life(3, epoch=epoch), first=3)
    with cluster.store._engine.begin() as connection:
        found = connection.exec_driver_sql("SELECT generation FROM rekindle_node_life ORDER BY 1").all()
    assert [row.generation for row in found] == [2, 3]
