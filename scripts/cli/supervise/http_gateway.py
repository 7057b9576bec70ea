"""The HTTP gateway of `rekindle run`, where it is asked for, and how its address is told."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

from loguru import logger

from rekindle.actors.gateways.operator import Operator
from rekindle.actors.gateways.settings.http_settings import HttpSettings


def serve_http(
    operator: Operator, state_dir: Path, settings: HttpSettings | None, stack: ExitStack
) -> str | None:
    """Serve it until the stack is left; its address, or None if it is off."""
    if settings is None:
        return None
    from rekindle.actors.gateways.http import HttpServer, Role

    server = stack.enter_context(HttpServer(operator, state_dir, settings))
    logger.info("the dashboard is at {}; rekindle dashboard prints a link to it", server.url)
    # A log may be kept and read by others; a terminal is where the person is who asked for this.
    if sys.stderr is not None and sys.stderr.isatty():
        logger.info("to look: {}", server.link(Role.VIEWER))
    return server.url
