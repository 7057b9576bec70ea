"""Puts jobs into the queues all the time, in a thread of its own: a database that is away holds it up.

Most are single jobs. Some come after earlier ones, are a batch, expire soon, have a time limit, or belong to
a queue with limits.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from typing import Any, Self

from rekindle.actors.errors import RekindleError
from rekindle.persistence import open_queue

from .fleet.workers_file import LIMITED, QUEUE
from .journal import Journal

EVERY_S = 0.3
CANCELLED = 0.1
"""How often a job is cancelled."""
KINDS = ("single", "chained", "batch", "expires", "slow", "overrun", "limited")
WEIGHTS = (55, 15, 6, 8, 5, 1, 10)
TIMEOUT_S = 0.5
CROWD = 6
"""How many jobs are put into the queue with limits at a time."""


class Enqueuer:
    """Enqueues jobs until it is closed; each payload has a key of its own."""

    def __init__(self, url: str, seed: int, journal: Journal) -> None:
        self._url = url
        self._chance = random.Random(seed)
        self._journal = journal
        self._latest: list[int] = []
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
            try:
                queue = queue or open_queue(self._url)
                self._enqueue(queue, number)
            except (RekindleError, OSError) as error:
                self._journal.note("unanswered", number=number, error=str(error))
        if queue is not None:
            queue.close()

    def _enqueue(self, queue: Any, number: int) -> None:
        (kind,) = self._chance.choices(KINDS, weights=WEIGHTS)
        match kind:
            case "chained" if self._latest:
                self._add(queue, self._payload(number), after=self._chance.sample(self._latest, 1))
            case "batch":
                self._add_batch(queue, number)
            case "expires":
                self._add(queue, self._payload(number), expires_in_s=self._chance.choice((0.05, 1.0)))
            case "slow" | "overrun":
                payload = {"key": f"job-{number}", "do": kind, "takes_s": 30.0}
                self._add(queue, payload, timeout_s=TIMEOUT_S)
            case "limited":
                for part in range(CROWD):
                    payload = {"key": f"job-{number}-{part}", "do": "work", "takes_s": 0.3}
                    self._add(queue, payload, LIMITED, key=self._chance.choice((None, "a", "b")))
            case _:
                self._add(queue, self._payload(number))

    def _add(self, queue: Any, payload: dict[str, Any], name: str = QUEUE, **settings: Any) -> None:
        note = {"key": payload["key"], "do": payload["do"], "after": settings.get("after", [])}
        try:
            added = queue.enqueue(name, payload, **settings)
        except (RekindleError, OSError) as error:
            self._journal.note("enqueued", **note, id=None, error=str(error))
            raise
        expires = time.monotonic() + settings["expires_in_s"] if "expires_in_s" in settings else None
        self._journal.note("enqueued", **note, id=added, expires=expires)
        self._latest = [*self._latest[-4:], added]
        if self._chance.random() < CANCELLED:
            self._cancel(queue, added)

    def _add_batch(self, queue: Any, number: int) -> None:
        payloads = [self._payload(f"{number}-{part}") for part in range(self._chance.choice((1, 3)))]
        then = {"key": f"job-{number}-then", "do": "work", "takes_s": 0.0}
        try:
            added = queue.batch(QUEUE, payloads, then=then)
        except (RekindleError, OSError) as error:
            for payload in (*payloads, then):
                self._journal.note(
                    "enqueued", key=payload["key"], do=payload["do"], id=None, error=str(error)
                )
            raise
        for payload, job in zip(payloads, added.job_ids, strict=True):
            self._journal.note("enqueued", key=payload["key"], do=payload["do"], id=job, batch=added.id)
        self._journal.note("enqueued", key=then["key"], do="work", id=added.callback_id, ends=added.id)

    def _cancel(self, queue: Any, job: int) -> None:
        """Cancel the new job, which mostly has not begun, or an older one."""
        job -= self._chance.choice((0, 1, 3))
        try:
            (state,) = queue.cancel([job])
        except RekindleError:
            return  # it has ended, or the database is away: whether it is cancelled is not known
        self._journal.note("cancelled", id=job, state=str(state))

    def _payload(self, number: object) -> dict[str, Any]:
        (do,) = self._chance.choices(("work", "raise", "die"), weights=(90, 7, 3))
        return {"key": f"job-{number}", "do": do, "takes_s": round(self._chance.choice((0.0, 0.3, 1.5)), 2)}
