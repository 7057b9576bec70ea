"""The part of `System` that puts jobs into queues."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Unpack

from ...facts.queues import BatchAdded
from ...spec.job_payload import JobSettings
from ..controls import Controls


class JobProducer:
    """Puts jobs into the queues that the workers of the system serve."""

    _controls: Controls

    def enqueue(
        self,
        queue: str,
        payload: object,
        **settings: Unpack[JobSettings],
    ) -> int:
        """Put a job into a queue and return its id. The job is durable when this returns.

        `JobSettings` explains the settings. Other programs use `rekindle.persistence.open_queue`.

        Raises:
            UnknownQueueError: no worker of this system serves the queue.
            PayloadError: the payload is not JSON, or a number is out of range.
            StoreUnavailableError: the database cannot be written to now.
        """
        (job,) = self._controls.enqueue_many(queue, [payload], **settings)
        return job

    def enqueue_many(
        self, queue: str, payloads: Iterable[object], **settings: Unpack[JobSettings]
    ) -> tuple[int, ...]:
        """Put a job for each payload into a queue, all or none, in one transaction; return their ids.

        The settings are those of `enqueue`.

        Raises:
            UnknownQueueError: no worker of this system serves the queue.
            PayloadError: a payload is not JSON, or a number is out of range.
            StoreUnavailableError: the database cannot be written to now.
        """
        return self._controls.enqueue_many(queue, payloads, **settings)

    def batch(
        self,
        queue: str,
        payloads: Iterable[object],
        *,
        then: object = None,
        then_queue: str | None = None,
        **settings: Unpack[JobSettings],
    ) -> BatchAdded:
        """Put jobs into a queue as a batch: when all of them have ended, one more job is run, once.

        That job has the payload `then`, is in the queue `then_queue`, by default the same, and finds in
        `job.batch` how the others ended. `system.jobs.batches(number)` shows how far the batch is.

        Raises:
            UnknownQueueError: no worker of this system serves one of the queues.
            PayloadError: a payload is not JSON, a number is out of range, or the batch has no job.
            StoreUnavailableError: the database cannot be written to now.
        """
        return self._controls.batch(queue, payloads, then, then_queue, **settings)
