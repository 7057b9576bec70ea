"""Pure: what a node has sent of its journal, as the database keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from ...facts.records import EventRecord, Lives


class ShippedEvent(msgspec.Struct, frozen=True):
    """One event of the journal of a node; its number and its time are those of that node."""

    node_id: str
    record: EventRecord


class ShippedPast(msgspec.Struct, frozen=True):
    """What some nodes have sent of one worker: its latest events, and all its lives that ended in death."""

    events: tuple[ShippedEvent, ...] = ()
    lives: Mapping[str, Lives] = MappingProxyType({})
    """By node."""
