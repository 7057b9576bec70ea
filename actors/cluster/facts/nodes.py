"""Pure: a machine with an agent, as its row in the database describes it.

         ┌────────── uncordon ──────────┐
         ▼                              │
    up ──┼─ cordon ─▶ cordoned ─────────┤
         ├─ drain ──▶ draining ─────────┤
         ├─ deaths ─▶ suspect ─▶ convicted ─▶ paroled ─▶ up: `rules.suspicion`
         │
         ├─ its lease runs out ─▶ lost ─ it joins again ─▶ up
         └─ it leaves ──────────▶ left ─ it joins again ─▶ up

A cordon, a suspicion and a drain outlast a loss: a node that joins again returns to the state in `held`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

import msgspec


class NodeState(StrEnum):
    """What a node is to the cluster."""

    UP = "up"
    CORDONED = "cordoned"
    SUSPECT = "suspect"
    """Workers die there: it gets no others until that is proven or refuted."""
    CONVICTED = "convicted"
    """They die because of it: it is drained."""
    PAROLED = "paroled"
    """It gets one worker, as a canary."""
    DRAINING = "draining"
    LOST = "lost"
    LEFT = "left"

    @property
    def takes_workers(self) -> bool:
        """Whether workers may be placed there; on one that is paroled, one."""
        return self in (NodeState.UP, NodeState.PAROLED)

    @property
    def empties(self) -> bool:
        """Whether its workers should run elsewhere."""
        return self in (NodeState.DRAINING, NodeState.CONVICTED)

    @property
    def is_member(self) -> bool:
        """Whether the node counts when a majority is formed."""
        return self not in (NodeState.LOST, NodeState.LEFT)


class Resources(msgspec.Struct, frozen=True, kw_only=True):
    """What a node can reserve: by name, such as `cpu`, `memory_mb` or `slots`."""

    amounts: Mapping[str, float] = msgspec.field(default_factory=lambda: MappingProxyType({}))

    def of(self, name: str) -> float:
        """How much there is of one resource; 0 if the node declares none."""
        return self.amounts.get(name, 0.0)


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """One row of `rekindle_node`. Its times are those of the database."""

    id: str
    name: str
    address: str = ""
    """Where its agent takes promises, as host:port."""
    boot_id: str = ""
    incarnation: int = 0
    """The life of its agent: a number that grows with each start and each return."""
    life: str = ""
    """The name that the agent gave this life when it joined."""
    version: str = ""
    labels: Mapping[str, str] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    capacity: Resources = Resources()
    engine_node: str = ""
    """Its name in the engine; empty if the engine is `none`."""
    state: NodeState = NodeState.UP
    state_reason: str = ""
    state_by: str = ""
    held: NodeState = NodeState.UP
    """The state to which a lost node returns: `up`, or the cordon, suspicion or drain it had."""
    renewals: int = 0
    """The number of the last renewal that was applied: it grows as long as the node is alive."""
    lease_until_ms: int = 0
    """Never set back, also if the clock of the database is."""
    testified_at_wall_ms: int = 0
    """The last renewal by which the node confirmed that it is part of the majority."""
    members: tuple[str, ...] = ()
    """The ids of the nodes of which a majority keeps this node's lease when the database is away."""
    run: str = ""
    """The mark of the supervisor that joined last: only its workers claim jobs for this node."""
    drain_until_ms: int | None = None
    """From then on a draining node kills what it still has, and `min_healthy` does not hold it back."""

    def is_overdue(self, now_ms: int) -> bool:
        """Whether it drains, and the deadline of that has passed."""
        until = self.drain_until_ms
        return self.state is NodeState.DRAINING and until is not None and until <= now_ms
