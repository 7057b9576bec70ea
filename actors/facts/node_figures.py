"""What a node of a cluster measures of itself; one actor writes each figure, other threads may read."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .commit_times import CommitTimes


class NodeFigures:
    """Renewals of the lease, the history that is not shipped, and suspicions of the leader."""

    def __init__(self) -> None:
        self.renewals = CommitTimes()
        """From the moment in which a renewal is sent to its answer."""
        self.unshipped_since_ms: int | None = None
        """The time of the oldest event that the shared database lacks; None: it has them all."""
        self.suspicions: Mapping[str, float] = MappingProxyType({})
        """By node: how probable its deaths are by chance; only the node that leads knows."""

    def ship_lag_s(self, now_wall_ms: int) -> float:
        """How old the oldest event is that the shared database lacks."""
        since = self.unshipped_since_ms
        return 0.0 if since is None else max(0.0, (now_wall_ms - since) / 1000)
