"""Pure: what a node knows of the others."""

from __future__ import annotations

import msgspec

from ...messages import WorkerStatus
from .nodes import Node
from .tenures import Assignment


class NodeReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a node says of its workers."""

    node_id: str
    at_ms: int
    """When it last said so, by the database's clock."""
    written_ms: int
    """When its words were as they are: it only confirms them while nothing but time passes."""
    workers: tuple[WorkerStatus, ...]


class ClusterLook(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster in one moment, as any of its nodes sees it."""

    now_ms: int
    leader: str | None
    """The id of the node whose coordinator acts."""
    nodes: tuple[Node, ...]
    assignments: tuple[Assignment, ...]
    reports: tuple[NodeReport, ...] = ()
    """Of the other nodes."""
