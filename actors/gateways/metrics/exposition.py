"""The metrics in the Prometheus format, from a registry of their own: the host's registry is not touched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from ...facts.commit_times import CommitTimes
from ...facts.node_figures import NodeFigures
from ...messages import NodeStatus
from ...messages.topics import ALL_EVENTS
from ..gateway_errors import MissingExtraError
from ..operator import Operator
from ..server_identity import Identity
from .event_counts import EventCounts
from .queue_depths import QueueDepths

if TYPE_CHECKING:
    from prometheus_client.core import Metric


class MetricsSource(Operator, Protocol):
    """What the metrics need of the supervisor."""

    def commit_times(self) -> CommitTimes:
        """How long commits took."""
        ...


class ClusterSource(Operator, Protocol):
    """What the metrics need of a node of a cluster."""

    def figures(self) -> NodeFigures | None:
        """What this node measures of itself, once it knows its cluster."""
        ...


def check() -> None:
    """Refuse to begin without what the metrics need.

    Raises:
        MissingExtraError: prometheus-client is not installed.
    """
    try:
        import prometheus_client  # noqa: F401
    except ImportError:
        raise MissingExtraError("the metrics endpoint", "metrics") from None


class Metrics:
    """Counts events from its creation on, and renders all metrics on request."""

    def __init__(self, source: MetricsSource, identity: Identity) -> None:
        """Subscribe to the events and begin to count.

        Raises:
            MissingExtraError: prometheus-client is not installed.
        """
        check()
        from prometheus_client import CollectorRegistry, ProcessCollector

        self._source = source
        self._identity = identity
        self.cluster: ClusterSource | None = None
        """Answers for the whole cluster, if the supervisor is a node of one."""
        self._counts = EventCounts()
        self._depths = QueueDepths(lambda: source.jobs.stats())
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        ProcessCollector(namespace="rekindle_supervisor", registry=self._registry)
        source.subscribe(self._counts, ALL_EVENTS)

    def text(self) -> bytes:
        """All metrics in the Prometheus format. Waits for the actors, never for the store.

        Raises:
            RekindleError: the actors did not reply.
        """
        from prometheus_client import generate_latest

        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """All metrics; called by the registry."""
        from .families import Scrape, families

        scrape = Scrape(
            self._identity,
            self._source.report(),
            self._counts.now(),
            self._source.commit_times(),
            self._source.gateways(),
            self._depths.look(self._source.queues),
            *self._cluster(),
        )
        yield from families(scrape)

    def _cluster(self) -> tuple[tuple[NodeStatus, ...], int, NodeFigures | None]:
        """The nodes, how many workers have none, and what this one measures."""
        cluster = self._source if self.cluster is None else self.cluster
        nodes = cluster.nodes()
        if not nodes:
            return (), 0, None
        figures = None if self.cluster is None else self.cluster.figures()
        return nodes, sum(each.node is None for each in cluster.report().workers), figures

    def describe(self) -> Iterator[Metric]:
        """Nothing: the supervisor may not have started at registration."""
        return iter(())
