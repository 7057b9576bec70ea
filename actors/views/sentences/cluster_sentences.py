"""Pure: the words of the events about the nodes of a cluster."""

from __future__ import annotations

from rekindle.worker.plain_text import span

from ...messages import (
    ClusterEvent,
    CountersRefunded,
    EngineAway,
    EngineBack,
    LateDeathsMerged,
    LeaderChanged,
    LeaseLost,
    LeaseRegained,
    NodeAcquitted,
    NodeConvicted,
    NodeCordoned,
    NodeDrained,
    NodeDraining,
    NodeJoined,
    NodeLeft,
    NodeLost,
    NodeParoled,
    NodeSuspected,
    NodeUncordoned,
    OutageHeld,
    SharedDatabaseAway,
    SharedDatabaseBack,
    ShipCaughtUp,
    ShipLagged,
    WorkerMoved,
    WorkerUnplaced,
    WorkerUnwanted,
)
from .sentence import Level, Sentence


def cluster_sentence(event: ClusterEvent) -> Sentence:
    """What an event about a node, or about a worker between nodes, says."""
    match event:
        case WorkerMoved(source=source, target=target, reason=reason):
            before = "" if source in (None, target) else f" (before: {source})"
            return Sentence("place", f"was placed on node {target}{before}: {reason}")
        case WorkerUnplaced(reason=reason, for_s=for_s):
            return Sentence("place", f"has had no node for {span(for_s * 1000)}: {reason}", Level.ERROR)
        case WorkerUnwanted():
            return Sentence("place", "is no longer wanted in the cluster")
        case LeaseLost(node=node):
            text = f"node {node} lost its lease: its workers are killed; this does not count against them"
            return Sentence("lease", text, Level.ERROR)
        case LeaseRegained(node=node):
            return Sentence("lease", f"node {node} has its lease again", Level.SUCCESS)
        case OutageHeld(node=node, agreed=agreed, members=members):
            text = f"node {node} keeps its workers: {agreed} of {members} nodes agree"
            return Sentence("lease", f"the shared database is unavailable; {text}", Level.WARNING)
        case CountersRefunded(restarts=restarts):
            return Sentence("place", f"{_restarts(restarts)} no longer count: a node caused them")
        case LateDeathsMerged(node=node, restarts=restarts):
            counts = "counts" if restarts == 1 else "count"
            return Sentence("place", f"{_restarts(restarts)} on node {node} became known late, and {counts}")
        case ShipLagged(node=node, for_s=for_s):
            text = f"the shared database has the history of node {node} only up to {span(for_s * 1000)} ago"
            return Sentence("cluster", text, Level.WARNING)
        case ShipCaughtUp(node=node):
            text = f"the shared database has the whole history of node {node} again"
            return Sentence("cluster", text, Level.SUCCESS)
        case LeaderChanged(node=None):
            return Sentence(
                "cluster", "no node leads the cluster: workers are neither placed nor moved", Level.WARNING
            )
        case LeaderChanged(node=node):
            return Sentence("cluster", f"node {node} leads the cluster: it places and moves workers")
        case EngineAway(reason=reason):
            return Sentence("cluster", f"the engine is unavailable: {reason}", Level.WARNING)
        case EngineBack():
            return Sentence("cluster", "the engine is available again", Level.SUCCESS)
        case SharedDatabaseAway(reason=reason):
            return Sentence("cluster", f"the shared database is unavailable: {reason}", Level.ERROR)
        case SharedDatabaseBack():
            return Sentence("cluster", "the shared database is available again", Level.SUCCESS)
        case _:
            return _node_sentence(event)


_NodeEvent = (
    NodeJoined
    | NodeLost
    | NodeLeft
    | NodeCordoned
    | NodeUncordoned
    | NodeDraining
    | NodeDrained
    | NodeSuspected
    | NodeAcquitted
    | NodeConvicted
    | NodeParoled
)


def _node_sentence(event: _NodeEvent) -> Sentence:
    match event:
        case NodeJoined(node=node):
            return Sentence("node", f"node {node} has joined", Level.SUCCESS)
        case NodeLost(node=node, reason=reason):
            return Sentence(
                "node", f"node {node} is lost: {reason}; its workers start elsewhere", Level.ERROR
            )
        case NodeLeft(node=node):
            return Sentence("node", f"node {node} has left the cluster")
        case NodeCordoned(node=node, reason=reason, by=by):
            return Sentence("node", f"node {node} takes no further workers{_why(reason, by)}")
        case NodeUncordoned(node=node):
            return Sentence("node", f"node {node} takes workers again", Level.SUCCESS)
        case NodeDraining(node=node, reason=reason, by=by):
            return Sentence("node", f"the workers of node {node} move elsewhere{_why(reason, by)}")
        case NodeDrained(node=node):
            return Sentence("node", f"node {node} has no worker left", Level.SUCCESS)
        case NodeSuspected(node=node, reason=reason):
            return Sentence("node", f"node {node} is suspect: {reason}", Level.WARNING)
        case NodeAcquitted(node=node):
            return Sentence("node", f"node {node} is trusted again", Level.SUCCESS)
        case NodeParoled(node=node, reason=reason):
            return Sentence("node", f"node {node} is on parole: {reason}")
        case NodeConvicted(node=node, reason=reason):
            return Sentence(
                "node", f"workers die because of node {node}: {reason}; they move to other nodes", Level.ERROR
            )


def _restarts(count: int) -> str:
    return "1 restart" if count == 1 else f"{count} restarts"


def _why(reason: str, by: str) -> str:
    who = f" ({by})" if by else ""
    return f": {reason}{who}" if reason else ""
