"""One report on the workers of all nodes: what is live, and what a node has said."""

from __future__ import annotations

from msgspec.structs import replace

from rekindle.actors.cluster.facts.looks import ClusterLook, NodeReport
from rekindle.actors.cluster.facts.nodes import NodeState
from rekindle.actors.cluster.facts.tenures import Assignment, TenurePhase
from rekindle.actors.cluster.views.whole_cluster import NO_BUDGET, lasting, nodes, whole
from rekindle.actors.facts.health_status import ShownStatus
from rekindle.actors.messages import StatusReport, WorkerStatus

from ..fleets import NOW_MS, node


def status(component_id: str, **fields: object) -> WorkerStatus:
    made = WorkerStatus(
        component_id=component_id,
        status=None,
        shown=ShownStatus.HEALTHY,
        generation=1,
        pid=7,
        uptime_s=10.0,
        restart_count=0,
        streak_count=0,
        next_attempt_in_s=None,
        failure_reason=None,
        current_job=None,
        paused=False,
        why="",
        budget=NO_BUDGET,
    )
    return replace(made, **fields)


def placed(component_id: str, node_id: str | None, reason: str = "") -> Assignment:
    phase = TenurePhase.UNPLACED if node_id is None else TenurePhase.PLACED
    return Assignment(component_id=component_id, epoch=5, node_id=node_id, phase=phase, reason=reason)


LOOK = ClusterLook(
    now_ms=NOW_MS,
    leader="b",
    nodes=(node("a"), node("b"), node("c", NodeState.LOST)),
    assignments=(placed("w:0", "a"), placed("w:1", "b"), placed("w:2", "b"), placed("w:3", None, "a: full")),
    reports=(
        NodeReport(
            node_id="b",
            at_ms=NOW_MS - 500,
            written_ms=NOW_MS - 4000,
            workers=(status("w:1", next_attempt_in_s=0.1, node="b"), status("w:0", pid=1, node="b")),
        ),
    ),
)
OWN = StatusReport((status("w:0", node="a"),), paused=False, unsaved=0, degraded=None)


def test_own_workers_are_live_and_the_others_as_their_node_has_said_with_the_time_since() -> None:
    found = {each.component_id: each for each in whole(OWN, "a", LOOK, 1.0).workers}
    assert found["w:0"] == OWN.workers[0]
    assert (found["w:1"].uptime_s, found["w:1"].next_attempt_in_s, found["w:1"].node) == (15.0, 0.0, "b")


def test_a_worker_of_which_no_node_has_spoken_says_so_and_one_without_a_node_says_why() -> None:
    found = {each.component_id: each for each in whole(OWN, "a", LOOK, 0.0).workers}
    assert (found["w:2"].shown, found["w:2"].why) == (ShownStatus.STARTING, "b has not said yet how it is")
    assert (found["w:3"].shown, found["w:3"].why) == (ShownStatus.STOPPED, "no node takes it: a: full")
    assert found["w:3"].node is None


def test_a_worker_that_has_moved_is_shown_once_where_it_is() -> None:
    assert [each.component_id for each in whole(OWN, "a", LOOK, 0.0).workers] == ["w:0", "w:1", "w:2", "w:3"]


def test_each_node_has_its_lease_its_workers_and_the_age_of_what_it_has_said() -> None:
    a, b, c = nodes("a", LOOK, 1.0)
    assert (a.is_own, a.age_s, a.workers, a.leads) == (True, 0.0, 1, False)
    assert (b.is_own, b.age_s, b.workers, b.leads, b.lease_left_s) == (False, 1.5, 2, True, 1.0)
    assert (c.state, c.lease_left_s, c.age_s) == ("lost", None, None)


def test_only_the_passing_of_time_leaves_a_report_as_it_was() -> None:
    before = (status("w:0", heartbeat_age_s=1.0),)
    assert lasting(before) == lasting((status("w:0", uptime_s=11.0, heartbeat_age_s=2.0),))
    assert lasting(before) != lasting((status("w:0", pid=8, heartbeat_age_s=1.0),))
