"""Pure: the alerts about a cluster: nodes that are lost or suspect, workers without a node, the engine.

The node that leads raises them, so that people are told once; each node resolves those that it has raised.
No node leads without the database of the cluster: each one that cannot reach it says so.
"""

from __future__ import annotations

from ...facts.alert import AlertKind, Severity
from ...messages import (
    EngineAway,
    EngineBack,
    Event,
    NodeAcquitted,
    NodeConvicted,
    NodeJoined,
    NodeLeft,
    NodeLost,
    NodeSuspected,
    SharedDatabaseAway,
    SharedDatabaseBack,
    ShipCaughtUp,
    ShipLagged,
    WorkerMoved,
    WorkerUnplaced,
    WorkerUnwanted,
)
from .alert_book import AlertStep, Book, raised, resolved


def heard_of_cluster(book: Book, event: Event, now_wall_ms: int) -> AlertStep:
    """Apply an event about the cluster."""
    match event:
        case NodeLost(node=node, reason=reason, leads=True):
            text = f"node {node} is lost; its workers start elsewhere"
            return raised(book, f"node:{node}", AlertKind.NODE, Severity.CRITICAL, text, reason, now_wall_ms)
        case NodeSuspected(node=node, reason=reason, leads=True):
            text = f"workers die on node {node} more than elsewhere"
            return raised(book, f"node:{node}", AlertKind.NODE, Severity.WARNING, text, reason, now_wall_ms)
        case NodeConvicted(node=node, reason=reason, leads=True):
            text = f"workers die because of node {node}; they move to other nodes"
            return raised(book, f"node:{node}", AlertKind.NODE, Severity.CRITICAL, text, reason, now_wall_ms)
        case NodeJoined(node=node) | NodeLeft(node=node) | NodeAcquitted(node=node):
            return resolved(book, [book.active(f"node:{node}", AlertKind.NODE)], now_wall_ms)
        case WorkerUnplaced(component_id=id_, reason=reason, leads=True):
            text = "no node of the cluster takes it"
            return raised(book, id_, AlertKind.UNPLACED, Severity.CRITICAL, text, reason, now_wall_ms)
        case WorkerMoved(component_id=id_) | WorkerUnwanted(component_id=id_):
            return resolved(book, [book.active(id_, AlertKind.UNPLACED)], now_wall_ms)
        case EngineAway(reason=reason):
            text = "the engine of the cluster is away; no room is reserved"
            return raised(book, None, AlertKind.ENGINE, Severity.WARNING, text, reason, now_wall_ms)
        case EngineBack():
            return resolved(book, [book.active(None, AlertKind.ENGINE)], now_wall_ms)
        case SharedDatabaseAway(reason=reason):
            text = "the database of the cluster is unavailable; workers run, but none is placed or moved"
            kind = AlertKind.SHARED_DATABASE
            return raised(book, None, kind, Severity.CRITICAL, text, reason, now_wall_ms)
        case ShipLagged(node=node) if book.active(None, AlertKind.SHARED_DATABASE) is None:
            text = f"the database of the cluster lacks the latest history of node {node}"
            reason = "if this machine is lost now, its latest deaths are not known elsewhere"
            return raised(book, None, AlertKind.SHIP_LAG, Severity.WARNING, text, reason, now_wall_ms)
        case ShipCaughtUp():
            return resolved(book, [book.active(None, AlertKind.SHIP_LAG)], now_wall_ms)
        case SharedDatabaseBack():
            return resolved(book, [book.active(None, AlertKind.SHARED_DATABASE)], now_wall_ms)
        case _:
            return AlertStep(book)
