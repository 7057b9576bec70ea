"""Pure: what the actors of a cluster, its store, its engine and its peers tell each other.

    Agent ─ JoinNode ──────▶ ClusterStore ─ Joined, JoinRefused, StoreAway ──────▶ Agent
    Agent ─ Renew ─────────▶ ClusterStore ─ Renewed, RenewalRefused, StoreAway ──▶ Agent
    Agent ─ PromiseAsked, PromiseGot ─▶ Peers ─ the same ────────────────────────▶ Agent
    Coordinator ─ ReadCluster ─▶ ClusterStore ─ ClusterRead, StoreAway ──────────▶ Coordinator
    Coordinator ─ a Change ────▶ ClusterStore ─ Changed, StoreAway ──────────────▶ Coordinator
    Agent ─ StartTenure ───▶ Host ─ TenureStopped, WorkerRefused, JournalShipped ▶ Agent
    Coordinator ─ RoomClaim ───▶ Engine ─ RoomGranted, RoomDenied, NodeOffered … ▶ Coordinator

Each change is one guarded statement: it names what its author believes (epoch, incarnation, renewals), and
changes nothing if that is no longer so. So two coordinators, or an old answer, do no harm.
"""

from __future__ import annotations

import msgspec

from ..facts.records import RememberedWorker
from .engine_messages import EngineNews
from .facts.cases import GiveRuling, KeptRuling, Overrule
from .facts.node_lives import NodeLife
from .facts.nodes import Node, NodeState
from .facts.promises import PromiseAsked, PromiseGot
from .facts.tenures import Assignment, Tenure
from .facts.wishes import Wanted, Wish

# ── Agent → ClusterStore ─────────────────────────────────────────────────────────────────


class JoinNode(msgspec.Struct, frozen=True, kw_only=True):
    """Begin a new life of an agent: its row gets the next incarnation, and keeps a cordon."""

    node: Node
    life: str
    """Names this life of the agent: a request that is applied twice begins one life only."""
    not_after_ms: int | None = None
    """None: the agent does not know the time of the database yet."""


class Renew(msgspec.Struct, frozen=True, kw_only=True):
    """Extend the lease of a node."""

    node_id: str
    incarnation: int
    number: int
    """Becomes the row's `renewals`. A renewal with a number that is not greater than the row's is refused:
    none is applied after a later one."""
    lease_ms: int
    members: tuple[str, ...]
    testify: bool
    not_after_ms: int
    """In the time of the database: a renewal that is applied later changes nothing, and a testimony is
    never later than this."""


# ── ClusterStore → Agent ─────────────────────────────────────────────────────────────────


class Joined(msgspec.Struct, frozen=True, kw_only=True):
    """The new life is on record; the node holds no lease before its first renewal."""

    node: Node
    now_ms: int
    living: tuple[Node, ...] = ()
    """The members of the cluster, this node among them: its first renewal counts them."""
    assignments: tuple[Assignment, ...] = ()
    tenures: tuple[Tenure, ...] = ()
    """Of the workers that are assigned to the node, all of them, oldest first."""


class JoinRefused(msgspec.Struct, frozen=True):
    """Another machine has the name, the database has another version …"""

    reason: str
    now_ms: int


class Renewed(msgspec.Struct, frozen=True, kw_only=True):
    """The renewal was applied."""

    number: int
    now_ms: int
    lease_until_ms: int
    testified_at_wall_ms: int
    state: NodeState
    living: tuple[Node, ...]
    """The nodes that are neither lost nor have left, this one included."""
    assignments: tuple[Assignment, ...] = ()
    """All that are assigned to this node."""
    wishes: tuple[Wish, ...] = ()
    """Of the assigned workers."""
    tenures: tuple[Tenure, ...] = ()
    """Of the assigned workers, all of them, oldest first."""


class RenewalRefused(msgspec.Struct, frozen=True, kw_only=True):
    """The row did not match: the node was declared lost, a later life has begun, or the renewal was late."""

    number: int
    now_ms: int
    state: NodeState | None
    """None: it does not know the node."""
    incarnation: int
    reason: str


class StoreAway(msgspec.Struct, frozen=True, kw_only=True):
    """The store did not answer; whether it applied the request is unknown."""

    request: object
    reason: str


# ── Coordinator → ClusterStore ───────────────────────────────────────────────────────────


class ReadCluster(msgspec.Struct, frozen=True):
    """Read all nodes, wishes and assignments, in one transaction."""

    number: int
    acts: bool = True
    """Whether the reader wants to lead; the store lets one of those lead that do."""
    judges: bool = False
    """Whether it also reads what suspicions are judged by: the lives of processes."""


class DeclareLost(msgspec.Struct, frozen=True, kw_only=True):
    """A node is silent: mark it as lost, end its tenures and free its assignments, in one transaction.

    Guards: `renewals` is unchanged, its lease is over in the database's time, and enough of its members
    testified after its lease that the others are not a majority.
    """

    node_id: str
    incarnation: int
    renewals: int
    reason: str


class PlaceWorker(msgspec.Struct, frozen=True, kw_only=True):
    """Assign a worker under a new epoch.

    Guards: the assignment has this epoch and no node, and the node is up, has this incarnation and a fresh
    lease.
    """

    component_id: str
    epoch: int
    """The one before: what its author knows."""
    node_id: str
    incarnation: int
    reason: str


class BeginRelease(msgspec.Struct, frozen=True, kw_only=True):
    """Have the agent of its node stop a worker and give it back. Guard: placed with this epoch."""

    component_id: str
    epoch: int
    reason: str
    target: str | None = None
    """The node where it should go, if its author chose one."""


class GiveBack(msgspec.Struct, frozen=True, kw_only=True):
    """An agent has stopped a worker: write the tenure and free the assignment, in one transaction.

    Guard: the assignment has this epoch and this node.
    """

    node_id: str
    component_id: str
    epoch: int
    tenure: Tenure
    reason: str = ""
    refused: str = ""
    """Why this node cannot run the worker; it is not placed there again before its wish changes."""


class NoteUnplaced(msgspec.Struct, frozen=True, kw_only=True):
    """Record why a worker has no place. Guard: no node, and this epoch."""

    component_id: str
    epoch: int
    reason: str


class KeepTenure(msgspec.Struct, frozen=True):
    """Insert or update one tenure; its author is the holder of the epoch, also after the tenure ended."""

    tenure: Tenure


class SetNodeState(msgspec.Struct, frozen=True, kw_only=True):
    """Cordon, drain, suspect or uncordon a node, or let it leave. Guard: its state is in `only_from`."""

    node_id: str
    state: NodeState
    reason: str
    by: str
    only_from: tuple[NodeState, ...]
    deadline_ms: int | None = None
    """Of a drain: after this time what is left is killed."""


class PutWish(msgspec.Struct, frozen=True):
    """Insert or replace a wish; a new one gets an unplaced assignment."""

    wish: Wish


class WantWorker(msgspec.Struct, frozen=True):
    """Change what is wanted of a worker."""

    component_id: str
    wanted: Wanted


class RemoveWish(msgspec.Struct, frozen=True):
    """The worker is no longer wanted anywhere; its assignment is released first. Guard: it has no node."""

    component_id: str


Change = (
    DeclareLost
    | PlaceWorker
    | BeginRelease
    | GiveBack
    | NoteUnplaced
    | KeepTenure
    | SetNodeState
    | GiveRuling
    | Overrule
    | PutWish
    | WantWorker
    | RemoveWish
)

# ── ClusterStore → Coordinator ───────────────────────────────────────────────────────────


class ClusterRead(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the cluster in one moment."""

    number: int
    now_ms: int
    leads: bool = True
    """False: another coordinator acts, and only the nodes were read. Two leaders do no harm either."""
    nodes: tuple[Node, ...]
    wishes: tuple[Wish, ...]
    assignments: tuple[Assignment, ...]
    tenures: tuple[Tenure, ...] = ()
    """The latest of each worker."""
    rulings: tuple[KeptRuling, ...] = ()
    """The latest on each node."""
    lives: tuple[NodeLife, ...] = ()
    """Those of the last minutes, and since the earliest suspicion."""
    judged: bool = False
    """Whether the lives were read."""


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """A change was tried; `applied` says whether its guards held."""

    change: Change
    applied: bool
    assignments: tuple[Assignment, ...] = ()
    """Those that it changed, as they are now."""
    late: int = 0
    """How many restarts a tenure got after its node was declared lost."""


# ── Agent → Host → Agent ─────────────────────────────────────────────────────────────────


class StartTenure(msgspec.Struct, frozen=True, kw_only=True):
    """Supervise a worker on this node."""

    wish: Wish
    assignment: Assignment
    known: RememberedWorker
    """What it brings along from its former tenures."""
    tenure: Tenure | None = None
    """What is known of this very tenure: a former life of this agent began it."""


class TenureStopped(msgspec.Struct, frozen=True, kw_only=True):
    """The last process of a worker has ended, and none follows."""

    component_id: str
    epoch: int
    tenure: Tenure
    """With its final counters."""


class WorkerRefused(msgspec.Struct, frozen=True, kw_only=True):
    """The node cannot run a worker: it does not know its spec, or has not got its program."""

    component_id: str
    epoch: int
    reason: str


class JournalShipped(msgspec.Struct, frozen=True):
    """What the former lives of this agent have counted is in the database: the agent may join."""


# ── timers ───────────────────────────────────────────────────────────────────────────────


class JoinDue(msgspec.Struct, frozen=True):
    """The agent should try to join."""


class RenewDue(msgspec.Struct, frozen=True):
    """The agent should renew its lease."""

    life: str


class LeaseDue(msgspec.Struct, frozen=True):
    """The right of the agent may be over."""


class ReadDue(msgspec.Struct, frozen=True):
    """The coordinator should read the state of the cluster."""


AgentMessage = (
    JoinDue
    | RenewDue
    | LeaseDue
    | Joined
    | JoinRefused
    | Renewed
    | RenewalRefused
    | StoreAway
    | Changed
    | PromiseAsked
    | PromiseGot
    | TenureStopped
    | WorkerRefused
    | JournalShipped
)
CoordinatorMessage = ReadDue | ClusterRead | Changed | StoreAway | EngineNews
