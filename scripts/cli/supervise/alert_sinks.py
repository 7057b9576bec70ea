"""Where the alerts of `rekindle run` are sent, where the file asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rekindle.actors import System
from rekindle.actors.gateways.secret_file import read_secret
from rekindle.actors.gateways.settings.sink_settings import SinkSettings
from rekindle.actors.gateways.sinks import AlertNotifier, CommandSink, Route, WebhookSink
from rekindle.actors.gateways.sinks.notification import Filter
from rekindle.actors.runtime.thread_runtime import RealClock

from ..config.tables.alerts import AlertSettings


@contextmanager
def sending_alerts(system: System, settings: AlertSettings) -> Iterator[None]:
    """Send alerts for as long as this lasts.

    Raises:
        GatewayError: the secret of a webhook cannot be read, or is not safe from others.
    """
    if not settings.sinks:
        yield
        return
    with AlertNotifier([_route(sink) for sink in settings.sinks], RealClock()) as notifier:
        system.subscribe(notifier)
        yield
        system.unsubscribe(notifier)


def _route(settings: SinkSettings) -> Route:
    wanted = Filter(happenings=settings.on, least=settings.least, per_minute=settings.per_minute)
    if settings.command:
        return Route(CommandSink(settings.command, settings.timeout_s), wanted)
    secret = None if settings.secret_file is None else read_secret(settings.secret_file).encode()
    return Route(WebhookSink(settings.webhook, secret, settings.timeout_s), wanted)
