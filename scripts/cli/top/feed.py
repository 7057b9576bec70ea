"""Fetches the supervisor's state for the view, in background threads.

It asks again after every event of the stream, and every few seconds in any case. It waits for a
supervisor that goes away.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ..client import ControlClient, ControlError
from ..event_client import stream
from ..render.job_progress import JOBS_S, RUNNING_JOBS, hold_jobs, with_jobs
from .board import Board

RESYNC_S = 5.0
"""The interval between two requests while there are no events."""

RETRY_S = 0.5
"""The interval between two attempts while the supervisor is away."""

MEASURE_S = 3.0
"""The minimum interval between two measurements of CPU and memory, which scan the process table."""

LEAST_INTERVAL_S = 0.1
"""The minimum interval between two requests, however many events arrive."""


class Feed:
    """Keeps a board up to date."""

    def __init__(self, client: ControlClient, show: Callable[[Board], None]) -> None:
        self._client = client
        self._show = show
        self._board = Board()
        self._measured_at = 0.0
        self._wake = threading.Event()
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=loop, name=f"rekindle-top-{name}", daemon=True)
            for name, loop in (("look", self._look), ("listen", self._listen))
        ]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop the threads."""
        self._ended.set()
        self._wake.set()

    def refresh(self) -> None:
        """Ask now."""
        self._wake.set()

    def _look(self) -> None:
        while not self._ended.is_set():
            self._board = self._asked()
            self._show(self._board)
            self._measure()
            self._ended.wait(LEAST_INTERVAL_S)
            self._wake.wait(RETRY_S if self._board.trouble else RESYNC_S)
            self._wake.clear()

    def _asked(self) -> Board:
        try:
            report = self._client.get("/workers", timeout_s=5.0)
            alerts = self._client.get("/alerts", timeout_s=5.0)["alerts"]
        except ControlError as error:
            return replace(self._board, trouble=str(error))
        return Board(
            tuple(self._with_progress(report["workers"])),
            tuple(alerts),
            time.monotonic(),
            report["paused"],
            breakers=tuple(report.get("breakers", ())),
            rollouts=tuple(each for each in report.get("rollouts", ()) if each["stage"] != "over"),
            usages=self._board.usages,
        )

    def _with_progress(self, workers: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The workers with how far their jobs are; without it if the store does not answer."""
        if not hold_jobs(workers):
            return workers
        with suppress(ControlError):
            return with_jobs(workers, self._client.get(RUNNING_JOBS, timeout_s=JOBS_S))
        return workers

    def _measure(self) -> None:
        """Ask what the workers use, after what they do is shown: it takes longer."""
        if self._board.trouble or time.monotonic() - self._measured_at < MEASURE_S:
            return
        self._measured_at = time.monotonic()
        with suppress(ControlError):
            used = self._client.get("/resources", timeout_s=5.0)["workers"]
            self._board = replace(self._board, usages={each["id"]: each for each in used})
            self._show(self._board)

    def _listen(self) -> None:
        while not self._ended.is_set():
            with suppress(ControlError):
                for _event in stream(self._client):
                    self._wake.set()
                    if self._ended.is_set():
                        return
            self._ended.wait(RETRY_S)
