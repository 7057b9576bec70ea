"""Brings the supervisor's state to the view, on a thread of its own, for as long as the view is open.

It asks anew whenever something happened, as the stream of events tells, and every few seconds
for the sake of it. A supervisor that goes away is waited for.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from ..client import ControlClient, ControlError
from ..event_client import stream
from .board import Board

RESYNC_S = 5.0
"""How long nothing may happen before it is asked for all the same."""

RETRY_S = 0.5
"""How long it is between two looks for a supervisor that is gone."""

BREATH_S = 0.1
"""However much happens, no more often than this is asked for it."""


class Feed:
    """Keeps a board up to date."""

    def __init__(self, socket_path: str, client: ControlClient, show: Callable[[Board], None]) -> None:
        self._path = socket_path
        self._client = client
        self._show = show
        self._board = Board()
        self._wake = threading.Event()
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=loop, name=f"rekindle-top-{name}", daemon=True)
            for name, loop in (("look", self._look), ("listen", self._listen))
        ]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ask for nothing more."""
        self._ended.set()
        self._wake.set()

    def hurry(self) -> None:
        """Something happened: ask now."""
        self._wake.set()

    def _look(self) -> None:
        while not self._ended.is_set():
            self._board = self._asked()
            self._show(self._board)
            self._ended.wait(BREATH_S)
            self._wake.wait(RETRY_S if self._board.trouble else RESYNC_S)
            self._wake.clear()

    def _asked(self) -> Board:
        try:
            report = self._client.get("/workers", timeout_s=5.0)
            alerts = self._client.get("/alerts", timeout_s=5.0)["alerts"]
        except ControlError as error:
            return replace(self._board, trouble=str(error))
        return Board(
            tuple(report["workers"]),
            tuple(alerts),
            time.monotonic(),
            report["paused"],
            breakers=tuple(report.get("breakers", ())),
        )

    def _listen(self) -> None:
        while not self._ended.is_set():
            with suppress(ControlError):
                for _event in stream(self._path):
                    self._wake.set()
                    if self._ended.is_set():
                        return
            self._ended.wait(RETRY_S)
