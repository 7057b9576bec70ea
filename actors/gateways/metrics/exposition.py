"""The metrics as Prometheus reads them, from a registry of our own: a host's metrics are the host's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from ...facts.commit_times import CommitTimes
from ...messages.topics import ALL_EVENTS
from ..gateway_errors import MissingExtraError
from ..operator import Operator
from ..server_identity import Identity
from .event_counts import EventCounts
from .queue_depths import QueueDepths

if TYPE_CHECKING:
    from prometheus_client.core import Metric


class MetricsSource(Operator, Protocol):
    """What the metrics are about. A fleet is one."""

    def commit_times(self) -> CommitTimes:
        """How long commits took."""
        ...


class Metrics:
    """EventCounts from the moment on that it is made, and shows the numbers when asked."""

    def __init__(self, watched: MetricsSource, identity: Identity) -> None:
        """Begin to count.

        Raises:
            MissingExtraError: prometheus-client is not installed.
        """
        try:
            from prometheus_client import CollectorRegistry, ProcessCollector
        except ImportError:
            raise MissingExtraError("the metrics", "metrics") from None
        self._watched = watched
        self._identity = identity
        self._counts = EventCounts()
        self._depths = QueueDepths(lambda: watched.jobs.stats())
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        ProcessCollector(namespace="rekindle_supervisor", registry=self._registry)
        watched.subscribe(self._counts, ALL_EVENTS)

    def text(self) -> bytes:
        """All metrics, as Prometheus reads them. Waits for the actors, never for the store.

        Raises:
            RekindleError: the actors do not answer.
        """
        from prometheus_client import generate_latest

        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """All metrics; asked for by the registry."""
        from .families import Scrape, families

        seen = Scrape(
            self._identity,
            self._watched.report(),
            self._counts.now(),
            self._watched.commit_times(),
            self._watched.gateways(),
            self._depths.look(self._watched.queues),
        )
        yield from families(seen)

    def describe(self) -> Iterator[Metric]:
        """Nothing: at registration there is nobody to ask yet."""
        return iter(())
