"""How full the queues are: read from the store on a thread of its own, so that no scrape waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping

from loguru import logger

from ...errors import RekindleError
from ...facts.jobs import QueueStats

PATIENCE_S = 0.25
"""How long a scrape waits for new figures; with a store that takes longer it shows the last ones."""


class QueueDepths:
    """The last figures of every queue. Any thread may ask."""

    def __init__(self, read: Callable[[], Iterable[QueueStats]]) -> None:
        self._read = read
        self._lock = threading.Lock()
        self._reading: threading.Event | None = None
        self._known: dict[str, QueueStats] = {}

    def look(self, served: Iterable[str]) -> Mapping[str, QueueStats]:
        """The figures of every queue that has jobs, and of these in any case."""
        self._begun().wait(PATIENCE_S)
        with self._lock:
            return {name: QueueStats(queue=name) for name in served} | self._known

    def _begun(self) -> threading.Event:
        """What is set once the reading ends that is under way, or begins now."""
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
            logger.debug("the queues cannot be counted: {}", str(error))
            found = None
        except Exception as error:  # noqa: BLE001  # whatever it is, the next scrape looks again
            logger.opt(exception=error).error("the queues cannot be counted")
            found = None
        with self._lock:
            self._known = self._known if found is None else found
            self._reading = None
        ended.set()
