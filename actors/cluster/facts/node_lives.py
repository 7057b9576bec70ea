"""Pure: the processes of workers on the nodes, as the database keeps them."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Fault(StrEnum):
    """Who is at fault for the end of a process."""

    WORKER = "worker"
    NODE = "node"
    OPERATOR = "operator"
    UNKNOWN = "unknown"

    @property
    def counts(self) -> bool:
        """Whether it counts against the worker."""
        return self in (Fault.WORKER, Fault.UNKNOWN)


class NodeLife(msgspec.Struct, frozen=True, kw_only=True):
    """One row of `rekindle_node_life`: a process of a worker on a node, and how it ended.

    Its times are those of the node while it is under way, and those of the database once it is there.
    """

    node_id: str
    component_id: str
    generation: int
    epoch: int = 0
    began_ms: int
    ended_ms: int | None = None
    """None: it lives, as far as its node has told."""
    cause: str = ""
    """`stopped`, or the cause of its death."""
    fault: Fault | None = None
    """None: it lives."""
    counted: bool = False
    """Whether its death was counted as a restart of its worker."""
    died: bool = False
    """Whether it ended by itself, and not well: this is evidence for or against its node."""
    is_hard: bool = False
    """Whether it died, or could not start, because of the machine: no space, no descriptors, no memory."""
