"""Where the alerts of `rekindle run` are sent, where the file asks for it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rekindle.actors import RequestRefusedError, System
from rekindle.actors.gateways.alerts import AlertNotifier, CommandSink, Route, WebhookSink
from rekindle.actors.gateways.alerts.notice import Filter
from rekindle.actors.runtime import RealClock

from .config.alerts import AlertSettings, SinkSettings


@contextmanager
def sending_alerts(system: System, settings: AlertSettings) -> Iterator[None]:
    """Send alerts for as long as this lasts."""
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
    secret = None if settings.secret_file is None else _secret(settings.secret_file)
    return Route(WebhookSink(settings.webhook, secret, settings.timeout_s), wanted)


def _secret(path: Path) -> bytes:
    """What the file holds, without the newline at its end.

    Raises:
        RequestRefusedError: it cannot be read, is empty, or others may read it too.
    """
    try:
        mode = os.stat(path).st_mode
        secret = path.read_bytes().strip()
    except OSError as error:
        raise RequestRefusedError(f"the secret of a webhook cannot be read: {error}") from None
    if stat.S_IMODE(mode) & 0o077:
        raise RequestRefusedError(f"{path} may be read by others: chmod 600 it")
    if not secret:
        raise RequestRefusedError(f"{path} is empty")
    return secret
