"""Pure: what the engine and its link process tell each other, as lines of JSON."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ...cluster.engine_messages import RoomClaim


class Reserve(msgspec.Struct, frozen=True, tag="reserve"):
    """Reserve room for a worker. Answer: Reserved."""

    number: int
    claim: RoomClaim


class Keep(msgspec.Struct, frozen=True, tag="keep"):
    """These are all reservations of the cluster: make what is missing, remove the others."""

    claims: tuple[RoomClaim, ...]


class WantAgent(msgspec.Struct, frozen=True, tag="want_agent"):
    """Have an agent run on a machine of a Ray cluster that was there before."""

    engine_node: str


class Reserved(msgspec.Struct, frozen=True, tag="reserved"):
    """What came of a reservation."""

    number: int
    why_not: str | None = None


class RayMachine(msgspec.Struct, frozen=True, kw_only=True):
    """A machine that is alive in Ray."""

    ray_id: str
    address: str
    host: str = ""
    """The name of its host."""
    labels: Mapping[str, str] = {}
    total: Mapping[str, float] = {}
    """By Rekindle's names: cpu, memory_mb …"""


class Machines(msgspec.Struct, frozen=True, tag="machines"):
    """Ray answers; sent every second."""

    machines: tuple[RayMachine, ...]


class Away(msgspec.Struct, frozen=True, tag="away"):
    """Ray cannot be used now."""

    why: str


Order = Reserve | Keep | WantAgent
News = Reserved | Machines | Away
