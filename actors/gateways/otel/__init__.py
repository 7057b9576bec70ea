"""Traces for OpenTelemetry, with the extra `otel`; its packages are loaded when a gateway is created."""

from ..settings.otel_settings import OtelSettings
from .otel_gateway import OtelGateway

__all__ = ["OtelGateway", "OtelSettings"]
