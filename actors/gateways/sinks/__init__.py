"""Where alerts are sent: commands and webhooks, each on a thread of its own."""

from .command_sink import CommandSink
from .notifier import AlertNotifier, SinkRoute
from .webhook_sink import WebhookSink

__all__ = ["AlertNotifier", "CommandSink", "SinkRoute", "WebhookSink"]
