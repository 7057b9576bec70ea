"""Pure: what the Courier of a node hears."""

from __future__ import annotations

import msgspec

from ..messages import Published, Snapshot, StateChanged
from .cluster_messages import Changed, StoreAway
from .facts.tenures import Tenure


class TenureBegan(msgspec.Struct, frozen=True):
    """A worker is supervised on this node from now on."""

    tenure: Tenure


class GuardedUntil(msgspec.Struct, frozen=True):
    """Until when workers may run, in milliseconds since 1970 by the clock of this machine."""

    wall_ms: int


class TenuresRead(msgspec.Struct, frozen=True):
    """What the store knows of some tenures."""

    tenures: tuple[Tenure, ...]


class ShipDue(msgspec.Struct, frozen=True):
    """What is not in the store should be tried again; the first one begins with the former lives."""


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
