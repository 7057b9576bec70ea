"""Pure: what the couriers of a node hear, and what they ship."""

from __future__ import annotations

import msgspec

from ..facts.records import EventRecord
from ..messages import Published, Snapshot, StateChanged
from .cluster_messages import Changed, StoreAway
from .facts.node_lives import NodeLife
from .facts.tenures import Tenure


class TenureBegan(msgspec.Struct, frozen=True):
    """A worker is supervised on this node from now on."""

    tenure: Tenure


class GuardedUntil(msgspec.Struct, frozen=True):
    """Until when workers may run, in milliseconds since 1970 by the clock of this machine."""

    wall_ms: int
    at_ms: int
    """When that was known."""


class TenuresRead(msgspec.Struct, frozen=True):
    """What the store knows of some tenures."""

    tenures: tuple[Tenure, ...]


class ShipDue(msgspec.Struct, frozen=True):
    """What is not in the store should be tried again; the first one begins with the former lives."""


class ShipJournal(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the journal of a node. What the store has of it already stays as it is."""

    node_id: str
    records: tuple[EventRecord, ...]
    lives: tuple[NodeLife, ...] = ()
    """Those that the events have begun or ended; their times are those of the node."""
    keep_days: float | None = None
    """Forget what is older than this; None: forget nothing now."""


class JournalKept(msgspec.Struct, frozen=True):
    """How far the store has the journal of the node."""

    up_to: int


CourierMessage = (
    TenureBegan
    | GuardedUntil
    | TenuresRead
    | ShipDue
    | Changed
    | StoreAway
    | Published
    | Snapshot
    | StateChanged
)
HistoryMessage = JournalKept | GuardedUntil | ShipDue | StoreAway | Published | Snapshot | StateChanged
