"""Pure: one report on the workers of all nodes, from what this node sees and the others have said.

runs on this node ─▶ as its supervisor sees it now
placed elsewhere  ─▶ as that node last said, with the time since then added
                     or `starting`, if that node has not spoken of it
unplaced          ─▶ `stopped`, with the reason of each node
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec.structs import replace

from ...facts.health_status import ShownStatus
from ...messages import Budget, NodeStatus, StatusReport, WorkerStatus
from ..facts.looks import ClusterLook
from ..facts.nodes import Node
from ..facts.tenures import Assignment

NO_BUDGET = Budget(0, None, 0.0, 0, None, 0, None)


def whole(own: StatusReport, own_id: str, look: ClusterLook, since_s: float) -> StatusReport:
    """The report of this node with the workers of the others; `since_s`: how old the look is."""
    here = {each.component_id for each in own.workers}
    others = (each for each in look.assignments if each.component_id not in here)
    said = {
        (report.node_id, worker.component_id): _later(
            worker, max(0.0, (look.now_ms - report.written_ms) / 1000) + since_s
        )
        for report in look.reports
        for worker in report.workers
    }
    names = {node.id: node.name for node in look.nodes}
    elsewhere = [
        said.get((each.node_id or "", each.component_id)) or _unheard(each, names, own_id) for each in others
    ]
    return replace(own, workers=(*own.workers, *elsewhere))


def nodes(own_id: str, look: ClusterLook, since_s: float) -> tuple[NodeStatus, ...]:
    """The nodes of the cluster, and how old what is known of each is."""
    many = Counter(each.node_id for each in look.assignments)
    heard = {report.node_id: (look.now_ms - report.at_ms) / 1000 for report in look.reports}
    return tuple(
        _status(node, own_id, look, many[node.id], heard.get(node.id), since_s) for node in look.nodes
    )


def _status(
    node: Node, own_id: str, look: ClusterLook, workers: int, heard_s: float | None, since_s: float
) -> NodeStatus:
    is_own = node.id == own_id
    left_s = max(0.0, (node.lease_until_ms - look.now_ms) / 1000 - since_s)
    return NodeStatus(
        name=node.name,
        state=node.state.value,
        why=node.state_reason,
        by=node.state_by,
        lease_left_s=left_s if node.state.is_member else None,
        workers=workers,
        is_own=is_own,
        leads=node.id == look.leader,
        age_s=0.0 if is_own else None if heard_s is None else max(0.0, heard_s) + since_s,
    )


def _later(worker: WorkerStatus, age_s: float) -> WorkerStatus:
    """The status with the time that has passed since."""
    return replace(
        worker,
        uptime_s=_plus(worker.uptime_s, age_s),
        heartbeat_age_s=_plus(worker.heartbeat_age_s, age_s),
        next_attempt_in_s=_minus(worker.next_attempt_in_s, age_s),
        pause_ends_in_s=_minus(worker.pause_ends_in_s, age_s),
    )


def _plus(seconds: float | None, age_s: float) -> float | None:
    return None if seconds is None else seconds + age_s


def _minus(seconds: float | None, age_s: float) -> float | None:
    return None if seconds is None else max(0.0, seconds - age_s)


def _unheard(assignment: Assignment, names: dict[str, str], own_id: str) -> WorkerStatus:
    """A worker of which no node has said anything."""
    node = None if assignment.node_id is None else names.get(assignment.node_id, assignment.node_id)
    if assignment.node_id is None:
        shown, why = ShownStatus.STOPPED, f"no node takes it: {assignment.reason}"
    elif assignment.node_id == own_id:
        shown, why = ShownStatus.STARTING, "it was placed here just now"
    else:
        shown, why = ShownStatus.STARTING, f"{node} has not said yet how it is"
    return WorkerStatus(
        component_id=assignment.component_id,
        status=None,
        shown=shown,
        generation=0,
        pid=None,
        uptime_s=None,
        restart_count=0,
        streak_count=0,
        next_attempt_in_s=None,
        failure_reason=None,
        current_job=None,
        paused=False,
        why=why,
        budget=NO_BUDGET,
        node=node,
        epoch=assignment.epoch,
    )


def lasting(workers: Iterable[WorkerStatus]) -> tuple[WorkerStatus, ...]:
    """The same without what only the passing of time changes: equal reports need not be sent again."""
    return tuple(
        replace(
            each,
            uptime_s=None if each.uptime_s is None else 0.0,
            heartbeat_age_s=None if each.heartbeat_age_s is None else 0.0,
            next_attempt_in_s=None if each.next_attempt_in_s is None else 0.0,
            pause_ends_in_s=None if each.pause_ends_in_s is None else 0.0,
            schedule=None if each.schedule is None else replace(each.schedule, next_in_s=0.0),
            probes=(),
        )
        for each in workers
    )
