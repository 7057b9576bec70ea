"""The gateways of `rekindle run` that the file enables: NATS, metrics, the dashboard, alert sinks."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from loguru import logger

from rekindle.actors.gateways.gateway_state import Gateway, GatewayState
from rekindle.actors.gateways.server_identity import identity
from rekindle.actors.handover.document import convert

if TYPE_CHECKING:
    from rekindle.actors import System
    from rekindle.actors.gateways.http import HttpServer
    from rekindle.actors.gateways.metrics import Metrics
    from rekindle.actors.gateways.metrics.exposition import ClusterSource
    from rekindle.actors.gateways.operator import Operator
    from rekindle.actors.gateways.settings.http_settings import HttpSettings
    from rekindle.actors.gateways.settings.sink_settings import SinkSettings
    from rekindle.actors.gateways.sinks.notification import Filter
    from rekindle.actors.gateways.sinks.notifier import AlertNotifier, Sink

    from ..config import Config
    from ..config.tables.alert_sinks import AlertSettings
    from .fleet import SupervisedFleet


class EventGateways:
    """The gateways that publish events and metrics."""

    def __init__(self) -> None:
        self._gateways: tuple[Gateway, ...] = ()
        self._metrics: Metrics | None = None
        self._sinks: AlertNotifier | None = None

    def open(self, fleet: SupervisedFleet, config: Config, stack: ExitStack) -> None:
        """Open the configured gateways until the stack is left. Call it before any worker starts.

        Raises:
            GatewayError: a gateway cannot be opened.
        """
        server = identity(config.state_dir, None)
        if config.nats is not None:
            from rekindle.actors.gateways.nats import NatsGateway

            nats = stack.enter_context(NatsGateway(fleet, config.nats, server))
            # While the store can still persist how far the gateway has published.
            fleet.at_stop(nats.stop)
            self._gateways = (*self._gateways, nats)
        if config.otel is not None:
            from rekindle.actors.gateways.otel import OtelGateway

            otel = stack.enter_context(OtelGateway(fleet, config.otel, server))
            fleet.at_stop(otel.stop)
            self._gateways = (*self._gateways, otel)
        if config.metrics:
            from rekindle.actors.gateways.metrics import Metrics

            self._metrics = Metrics(fleet, server)

    def measure_cluster(self, operator: ClusterSource) -> None:
        """Let the metrics tell of the cluster, as this operator sees it."""
        if self._metrics is not None:
            self._metrics.cluster = operator

    def states(self) -> tuple[GatewayState, ...]:
        """The state of each gateway, and of each sink of alerts."""
        sinks = () if self._sinks is None else self._sinks.states()
        return (*(gateway.state() for gateway in self._gateways), *sinks)

    def send_alerts(
        self, system: System, settings: AlertSettings, stack: ExitStack, unsent: Mapping[str, object]
    ) -> None:
        """Send alerts to the configured sinks until the stack is left.

        Args:
            system: what raises alerts.
            settings: the sinks.
            stack: ends it.
            unsent: what the former program of this process left, by the names of the sinks.

        Raises:
            GatewayError: the secret of a webhook cannot be read, or other users can read it.
        """
        if not settings.sinks:
            return
        from rekindle.actors.gateways.sinks import AlertNotifier, SinkRoute
        from rekindle.actors.gateways.sinks.notification import Notification
        from rekindle.actors.runtime.thread_runtime import RealClock

        routes = [SinkRoute(sink_of(each), _filter(each), each.name) for each in settings.sinks]
        left = convert(unsent, dict[str, tuple[Notification, ...]], "alerts")
        self._sinks = AlertNotifier(routes, RealClock(), unsent=left)
        stack.enter_context(self._sinks)
        system.subscribe(self._sinks)
        stack.callback(system.unsubscribe, self._sinks)

    def leave_alerts(self) -> Mapping[str, object]:
        """Send no more alerts; what is unsent, by the names of the sinks."""
        return {} if self._sinks is None else self._sinks.leave()

    def example_of_alerts(self) -> Mapping[str, object]:
        """What an unsent alert looks like, by the names of the sinks, for the check of an upgrade."""
        return {} if self._sinks is None else self._sinks.example()

    def metrics_text(self) -> bytes | None:
        """The metrics, if they are enabled."""
        return None if self._metrics is None else self._metrics.text()


def serve_http(
    operator: Operator,
    state_dir: Path,
    settings: HttpSettings | None,
    stack: ExitStack,
    inherited: int | None = None,
    *,
    held: bool = False,
) -> HttpServer | None:
    """Serve the dashboard until the stack is left; None if it is off. Held requests wait for its `open`."""
    if settings is None:
        return None
    from rekindle.actors.gateways.http import ClientRole, HttpServer

    server = stack.enter_context(HttpServer(operator, state_dir, settings, inherited=inherited, held=held))
    logger.info("http: dashboard at {}; for a link run: rekindle dashboard", server.url)
    # The link is a secret: logs are stored and shared, a terminal shows it to the operator only.
    if sys.stderr is not None and sys.stderr.isatty():
        logger.info("http: link to view: {}", server.link(ClientRole.VIEWER))
    return server


def sink_of(settings: SinkSettings) -> Sink:
    """The sink that sends to the receiver of these settings.

    Raises:
        GatewayError: the secret cannot be read, or other users can read it.
    """
    from rekindle.actors.gateways import sinks
    from rekindle.actors.gateways.secret_file import read_secret
    from rekindle.actors.gateways.sinks import service_sinks

    limit_s = settings.timeout_s
    secret = None if settings.secret_file is None else read_secret(settings.secret_file)
    if settings.command:
        return sinks.CommandSink(settings.command, limit_s)
    if settings.slack:
        return service_sinks.SlackSink(secret or "", limit_s)
    if settings.ntfy:
        return service_sinks.NtfySink(settings.ntfy, secret, limit_s)
    if settings.pagerduty:
        return service_sinks.PagerDutySink(settings.pagerduty, secret or "", limit_s)
    if settings.email:
        return service_sinks.EmailSink(settings.email, settings.sender, settings.to, secret, limit_s)
    return sinks.WebhookSink(settings.webhook, None if secret is None else secret.encode(), limit_s)


def _filter(settings: SinkSettings) -> Filter:
    from rekindle.actors.gateways.sinks.notification import Filter

    return Filter(happenings=settings.on, least=settings.least, per_minute=settings.per_minute)
