"""Events about the nodes of a cluster, and about workers on their way between nodes.

Each node publishes what it sees, so each has them in its own stream. `leads`: the node whose coordinator acts
saw it; that one raises the alert, so that people are told once.
"""

from __future__ import annotations

import msgspec


class NodeJoined(msgspec.Struct, frozen=True):
    """A machine has joined the cluster, or is back."""

    node: str


class NodeLost(msgspec.Struct, frozen=True):
    """A node was silent for longer than its lease; its workers start elsewhere."""

    node: str
    reason: str
    leads: bool = False


class NodeLeft(msgspec.Struct, frozen=True):
    """A node has left the cluster for good, or was forgotten."""

    node: str


class NodeCordoned(msgspec.Struct, frozen=True):
    """An operator lets no further worker be placed on a node."""

    node: str
    reason: str
    by: str


class NodeUncordoned(msgspec.Struct, frozen=True):
    """A node takes workers again."""

    node: str


class NodeDraining(msgspec.Struct, frozen=True):
    """The workers of a node move elsewhere."""

    node: str
    reason: str
    by: str


class NodeDrained(msgspec.Struct, frozen=True):
    """A draining node has no worker left."""

    node: str


class NodeSuspected(msgspec.Struct, frozen=True):
    """Workers die on a node more than elsewhere."""

    node: str
    reason: str
    leads: bool = False


class NodeAcquitted(msgspec.Struct, frozen=True):
    """Workers that were suspected to die because of a node die elsewhere too, or an operator says so."""

    node: str


class NodeConvicted(msgspec.Struct, frozen=True):
    """Workers die because of a node: they move elsewhere, and those deaths do not count."""

    node: str
    reason: str
    leads: bool = False


class NodeParoled(msgspec.Struct, frozen=True):
    """A node that was convicted gets one worker again: if that lives, the node is trusted."""

    node: str
    reason: str


class WorkerMoved(msgspec.Struct, frozen=True):
    """A worker has another node, or has one again."""

    component_id: str
    source: str | None
    """The node where it was, if that is known."""
    target: str
    reason: str


class WorkerUnplaced(msgspec.Struct, frozen=True):
    """No node has taken a worker for a while."""

    component_id: str
    reason: str
    for_s: float
    leads: bool = False


class WorkerUnwanted(msgspec.Struct, frozen=True):
    """The cluster no longer runs a worker that had no node."""

    component_id: str


class LeaseLost(msgspec.Struct, frozen=True):
    """This node may no longer run its workers: they are killed, and nothing is counted."""

    node: str


class LeaseRegained(msgspec.Struct, frozen=True):
    """This node may run workers again."""

    node: str


class OutageHeld(msgspec.Struct, frozen=True):
    """The shared database is unavailable, and this node keeps its workers: a majority has promised it."""

    node: str
    agreed: int
    """How many nodes agree, this one among them."""
    members: int


class CountersRefunded(msgspec.Struct, frozen=True):
    """Restarts of a worker no longer count: a node was the cause."""

    component_id: str
    restarts: int


class LateDeathsMerged(msgspec.Struct, frozen=True):
    """A node has counted restarts of a worker that the cluster did not know when it gave the worker away."""

    component_id: str
    node: str
    restarts: int


class ShipLagged(msgspec.Struct, frozen=True):
    """The shared database does not get the history of this node in time."""

    node: str
    for_s: float
    """How old the oldest event is that it lacks."""


class ShipCaughtUp(msgspec.Struct, frozen=True):
    """The shared database has the whole history of this node again."""

    node: str


class LeaderChanged(msgspec.Struct, frozen=True):
    """Another coordinator places and moves workers."""

    node: str | None
    """None: none does."""


class EngineAway(msgspec.Struct, frozen=True):
    """What reserves room on the machines does not answer; workers are placed by what it said last."""

    reason: str


class EngineBack(msgspec.Struct, frozen=True):
    """What reserves room on the machines answers again."""


class SharedDatabaseAway(msgspec.Struct, frozen=True):
    """This node cannot reach the database that all nodes share: nothing is placed or moved."""

    reason: str


class SharedDatabaseBack(msgspec.Struct, frozen=True):
    """This node reaches the database that all nodes share again."""


ClusterEvent = (
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
    | WorkerMoved
    | WorkerUnplaced
    | WorkerUnwanted
    | LeaseLost
    | LeaseRegained
    | OutageHeld
    | CountersRefunded
    | LateDeathsMerged
    | ShipLagged
    | ShipCaughtUp
    | LeaderChanged
    | EngineAway
    | EngineBack
    | SharedDatabaseAway
    | SharedDatabaseBack
)
