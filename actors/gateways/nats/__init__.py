"""The NATS gateway, with the extra `nats`. nats-py is not loaded before a gateway is created."""

from ..settings.nats_settings import Login, NatsCommands, NatsSettings, Payload, Tls
from .nats_gateway import NatsGateway

__all__ = ["Login", "NatsCommands", "NatsGateway", "NatsSettings", "Payload", "Tls"]
