"""The figures of the queues: read from the store on a thread of their own, so that no scrape waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping

from loguru import logger

from ...errors import RekindleError
from ...facts.jobs import QueueStats

PATIENCE_S = 0.25
"""How long a scrape waits for new figures; if the store takes longer, it shows the last ones."""


class QueueDepths:
    """The last figures of every queue. Any thread may read them."""

    def __init__(self, read: Callable[[], Iterable[QueueStats]]) -> None:
        self._read = read
        self._lock = threading.Lock()
        self._reading: threading.Event | None = None
        self._known: dict[str, QueueStats] = {}

    def look(self, served: Iterable[str]) -> Mapping[str, QueueStats]:
        """The figures of every queue that has jobs, and of the `served` ones in any case."""
        self._begun().wait(PATIENCE_S)
        with self._lock:
            return {name: QueueStats(queue=name) for name in served} | self._known

    def _begun(self) -> threading.Event:
        """Set when the current read ends; begins one if none is in progress."""
        with self._lock:
            if self._reading is None:
                self._reading = threading.Event()
                threading.Thread(
                    target=self._refresh, args=(self._reading,), name="rekindle-depths", daemon=True
                ).start()
            return self._reading

    def _refresh(self, ended: threading.Event) -> None:
        try:
            found = {stats.queue: stats for stats in self._read() if stats.queue is not None}
        except RekindleError as error:
            logger.debug("metrics: cannot read the queues: {}", str(error))
            found = None
        except Exception as error:  # noqa: BLE001  # the next scrape tries again
            logger.opt(exception=error).error("metrics: cannot read the queues")
            found = None
        with self._lock:
            self._known = self._known if found is None else found
            self._reading = None
        ended.set()
