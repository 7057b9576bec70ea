"""Jobs that another queue delivers (Celery, RQ, Dramatiq), counted and convicted by Rekindle.

Each has a job of Rekindle beside it, with the same id as its unique key, in the queue that the worker's
`jobs` name. It is claimed when the task begins and ended with it. So a death of the worker is attributed to
it, and after as many crashes as the policy allows it is toxic, by the rules for every job.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ..handle import Worker
from ..jobs.claims import Claim, Claimant, Claims, QueueUnavailableError, failed, finished
from ..jobs.job import error_text
from ..jobs.job_settings import from_environment
from ..jobs.queue_address import open_claims

RELEASE_S = 2.0
"""How long to wait for the release of a job whose worker has just died."""
POLL_S = 0.05


class JobRefusedError(Exception):
    """The job was set aside: it crashed its workers too often, or was cancelled."""


class DeliveredJobs:
    """The jobs of one worker process. Every method may be called from any thread.

    Outside of Rekindle, and for a worker without `jobs.queues`, a job is only reported as the current one.
    """

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self._queue = next(iter(from_environment().queues), None)
        self._claims: Claims | None = None
        self._held: dict[str, Claim] = {}
        self._lock = threading.Lock()

    @contextmanager
    def job(self, key: str, about: object = None) -> Iterator[None]:
        """Hold a job while a `with` block executes it.

        Raises:
            JobRefusedError: it was set aside.
        """
        self.begin(key, about)
        try:
            yield
        except BaseException as error:
            self.end(key, error)
            raise
        self.end(key)

    def begin(self, key: str, about: object = None) -> None:
        """The job with this id begins; `about` is JSON for people.

        Raises:
            JobRefusedError: it was set aside.
        """
        self.worker.current_job = key
        with self._lock:
            state, claim = self._taken(key, json.dumps({"id": key, "about": about}, default=str))
            if claim is not None:
                self._held[key] = claim
        if state in ("toxic", "cancelled"):
            self.worker.current_job = None
            raise JobRefusedError(f"{key} is {state}: `rekindle jobs list --in-state {state}` shows why")

    def end(self, key: str, error: BaseException | None = None) -> None:
        """The job has ended, however it did."""
        with self._lock:
            claim = self._held.pop(key, None)
            if claim is not None:
                text = None if error is None else error_text(error)
                self._record(claim, text)
        if self.worker.current_job == key:
            self.worker.current_job = next(iter(self._held), None)

    def stop_when_asked(self) -> None:
        """Send this process SIGTERM when its supervisor asks it to stop, from a thread of its own."""

        def wait() -> None:
            self.worker.wait()
            os.kill(os.getpid(), signal.SIGTERM)

        threading.Thread(target=wait, name="rekindle-stop", daemon=True).start()

    def _taken(self, key: str, payload: str) -> tuple[str, Claim | None]:
        deadline = time.monotonic() + RELEASE_S
        while True:
            claims = self._opened()
            if claims is None or self._queue is None:
                return "unknown", None
            try:
                taken = claims.take(self._queue, key, payload)
            except QueueUnavailableError as error:
                _say(f"{key} is not counted: the queue is unavailable: {error}")
                return "unknown", None
            # Delivered again before the release of the dead worker's claims is committed.
            if taken.state != "running" or taken.claim is not None or time.monotonic() > deadline:
                return taken.state, taken.claim
            time.sleep(POLL_S)

    def _record(self, claim: Claim, error: str | None) -> None:
        assert self._claims is not None
        ending = finished(claim, None) if error is None else failed(claim, error, None)
        try:
            self._claims.exchange(ending, None)
        except QueueUnavailableError as problem:
            _say(f"the end of job {claim.id} is not recorded: {problem}")

    def _opened(self) -> Claims | None:
        if self._claims is None and self._queue is not None:
            address = self.worker.database()
            if address is not None:
                run = os.environ.get("REKINDLE_SYSTEM", "")
                whose = self.worker.component_id, self.worker.generation, run
                who = Claimant.supervisee(*whose, self.worker.node, self.worker.token)
                self._claims = open_claims(address, who)
        return self._claims


def _say(sentence: str) -> None:
    sys.stderr.write(f"rekindle: {sentence}\n")
