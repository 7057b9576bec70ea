"""The gateways of `rekindle run` that tell the outside what happens: NATS and metrics, where asked for."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from rekindle.actors.gateways.gateway_state import Gateway, GatewayState
from rekindle.actors.gateways.serving.server_thread import identity

if TYPE_CHECKING:
    from rekindle.actors.gateways.metrics import Metrics

    from ..config import Config
    from .fleet import Fleet


class Edges:
    """Those that are there."""

    def __init__(self) -> None:
        self._gateways: tuple[Gateway, ...] = ()
        self._metrics: Metrics | None = None

    def open(self, fleet: Fleet, config: Config, stack: ExitStack) -> None:
        """Open what the file asks for, until the stack is left; before any worker is started.

        Raises:
            GatewayError: one of them cannot be opened.
        """
        who = identity(config.state_dir, None)
        if config.nats is not None:
            from rekindle.actors.gateways.nats import NatsGateway

            nats = stack.enter_context(NatsGateway(fleet, config.nats, who))
            # While the store can still note how far it got.
            fleet.at_stop(nats.stop)
            self._gateways = (*self._gateways, nats)
        if config.metrics:
            from rekindle.actors.gateways.metrics import Metrics

            self._metrics = Metrics(fleet, who)

    def states(self) -> tuple[GatewayState, ...]:
        """How they are."""
        return tuple(gateway.state() for gateway in self._gateways)

    def metrics_text(self) -> bytes | None:
        """The metrics, if they are turned on."""
        return None if self._metrics is None else self._metrics.text()
