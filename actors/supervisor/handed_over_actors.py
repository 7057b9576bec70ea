"""What the former program of this process left to the actors; see `rekindle.actors.handover`."""

from __future__ import annotations

import msgspec

from ..rules.worker_health.health_states import Healthy
from ..rules.worker_health.known_health import KnownHealth
from ..supervision.handed_over_worker import HandedOverFleet
from ..worker_proxy import KnownProcess


class HandedOverActors(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The memory of the Supervisor, the HealthMonitor and the proxies."""

    fleet: HandedOverFleet
    health: dict[str, KnownHealth]
    processes: dict[str, KnownProcess]
    last_event_id: int = 0
    at: float = 0.0
    """When the former program stopped to watch."""

    def healthy_since(self) -> dict[str, float]:
        """Since when each healthy worker is healthy."""
        return {id_: each.state.since for id_, each in self.health.items() if isinstance(each.state, Healthy)}
