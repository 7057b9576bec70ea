"""The host's own package `actors`, which has nothing to do with ours."""

from __future__ import annotations

import queue
from typing import Any

import pykka

OWNER = "the host"


class Ear(pykka.ThreadingActor):
    """Puts its messages where the host's main thread can wait for them."""

    def __init__(self, heard: queue.Queue[Any]) -> None:
        super().__init__()
        self._heard = heard

    def on_receive(self, message: Any) -> Any:
        """Take a message; `ping` is answered."""
        if message == "ping":
            return "pong"
        self._heard.put(message)
        return None
