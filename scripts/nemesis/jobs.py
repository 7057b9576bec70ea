"""Puts jobs into the queue all the time, in a thread of its own: a database that is away holds it up."""

from __future__ import annotations

import itertools
import random
import threading
from typing import Any, Self

from rekindle.actors.errors import RekindleError
from rekindle.persistence import open_queue

from .fleet.workers_file import QUEUE
from .journal import Journal

EVERY_S = 0.3
CANCELLED = 0.1
"""How often a job is cancelled."""


class Enqueuer:
    """Enqueues jobs until it is closed; each payload has a key of its own."""

    def __init__(self, url: str, seed: int, journal: Journal) -> None:
        self._url = url
        self._chance = random.Random(seed)
        self._journal = journal
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="enqueuer", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(60.0)

    def _run(self) -> None:
        queue: Any = None
        for number in itertools.count(1):
            if self._over.wait(EVERY_S):
                break
            payload = self._payload(number)
            key, do = payload["key"], payload["do"]
            try:
                queue = queue or open_queue(self._url)
                added = queue.enqueue(QUEUE, payload)
                self._journal.note("enqueued", key=key, do=do, id=added)
                if self._chance.random() < CANCELLED:
                    self._cancel(queue, added)
            except (RekindleError, OSError) as error:
                self._journal.note("enqueued", key=key, do=do, id=None, error=str(error))
        if queue is not None:
            queue.close()

    def _cancel(self, queue: Any, job: int) -> None:
        """Cancel the new job, which mostly has not begun, or an older one."""
        job -= self._chance.choice((0, 1, 3))
        try:
            (state,) = queue.cancel([job])
        except RekindleError:
            return  # it has ended, or the database is away: whether it is cancelled is not known
        self._journal.note("cancelled", id=job, state=str(state))

    def _payload(self, number: int) -> dict[str, Any]:
        (do,) = self._chance.choices(("work", "raise", "die"), weights=(90, 7, 3))
        return {"key": f"job-{number}", "do": do, "takes_s": round(self._chance.choice((0.0, 0.3, 1.5)), 2)}
