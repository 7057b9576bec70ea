"""The NATS gateway, with the extra `nats`. Nothing of nats-py is loaded before a gateway is made."""

from ..settings.nats_settings import Commands, Login, NatsSettings, Payload, Tls
from .nats_gateway import NatsGateway

__all__ = ["Commands", "Login", "NatsGateway", "NatsSettings", "Payload", "Tls"]
