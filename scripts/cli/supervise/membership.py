"""Whether a supervisor is a node of a cluster; what that needs is loaded only then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from rekindle.actors.ports import Store

from ..config import Config
from .fleet import SupervisedFleet

if TYPE_CHECKING:
    from rekindle.actors.gateways.operator import Operator
    from rekindle.persistence.cluster.shared_jobs import SharedJobs


def fleet_class(config: Config) -> type[SupervisedFleet]:
    """What runs the workers of this file."""
    if config.cluster is None:
        return SupervisedFleet
    from .cluster.node_fleet import NodeFleet

    return NodeFleet


def operator_of(fleet: SupervisedFleet, config: Config) -> Operator:
    """What the gateways for people serve: the workers of this supervisor, or those of its whole cluster."""
    if config.cluster is None:
        return fleet
    from .cluster.cluster_operator import ClusterOperator

    operator: Any = ClusterOperator(fleet, config.path)  # the methods that it lacks are those of the fleet
    return cast("Operator", operator)


def with_shared_jobs(config: Config, store: Store) -> tuple[Store, SharedJobs | None]:
    """The store; that of a node uses the queues of all nodes."""
    if config.cluster is None:
        return store, None
    from .cluster.node import shared_jobs

    return store, shared_jobs(config, store)


def join_cluster(
    fleet: SupervisedFleet, config: Config, journal: Store, jobs: SharedJobs | None, operator: Operator
) -> None:
    """Let the cluster of a node say what runs here; its lease is kept until the last worker has ended."""
    if jobs is None:
        return
    from .cluster.cluster_operator import ClusterOperator
    from .cluster.node import ClusterNode

    assert isinstance(operator, ClusterOperator)
    fleet.event_gateways.measure_cluster(operator)
    fleet.at_stop(ClusterNode(fleet, config, journal, jobs, operator).close)
