"""Where alerts go: commands and webhooks, each on a thread of its own."""

from .command import CommandSink
from .notifier import AlertNotifier, Route
from .webhook import WebhookSink

__all__ = ["AlertNotifier", "CommandSink", "Route", "WebhookSink"]
