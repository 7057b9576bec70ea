"""Whether a supervisor is a node of a cluster; what that needs is loaded only then."""

from __future__ import annotations

from rekindle.actors.ports import Store

from ..config import Config
from .fleet import Fleet


def fleet_class(config: Config) -> type[Fleet]:
    """What runs the workers of this file."""
    if config.cluster is None:
        return Fleet
    from .cluster.node_fleet import NodeFleet

    return NodeFleet


def join_cluster(fleet: Fleet, config: Config, journal: Store) -> None:
    """Let the cluster of a node say what runs here; its lease is kept until the last worker has ended."""
    if config.cluster is None:
        return
    from .cluster.node import ClusterNode

    fleet.at_stop(ClusterNode(fleet, config, journal).close)
