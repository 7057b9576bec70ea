"""Dramatiq workers: `broker.add_middleware(RekindleMiddleware())`, and `serve` as the function of the worker.

A message that crashed its workers too often is failed without being executed: the broker has it among its
dead letters.
"""

from __future__ import annotations

from typing import Any

import dramatiq
from dramatiq.middleware import Middleware, SkipMessage

from ..handle import Worker
from .delivered_jobs import DeliveredJobs, JobRefusedError


class RekindleMiddleware(Middleware):  # type: ignore[misc, unused-ignore]
    """Reports every message from its beginning to its end; without a supervisor it does nothing."""

    def __init__(self) -> None:
        self.delivered: DeliveredJobs | None = None

    def before_process_message(self, broker: Any, message: Any) -> None:
        """A message begins."""
        if self.delivered is None:
            return
        try:
            self.delivered.begin(message.message_id, message.actor_name)
        except JobRefusedError as error:
            message.fail()
            raise SkipMessage(str(error)) from error

    def after_process_message(
        self, broker: Any, message: Any, *, result: Any = None, exception: BaseException | None = None
    ) -> None:
        """A message has ended."""
        if self.delivered is not None:
            self.delivered.end(message.message_id, exception)

    after_skip_message = after_process_message


def serve(worker: Worker, broker: Any, *, threads: int = 1) -> None:
    """Work off the broker's queues in this process until the supervisor asks it to stop.

    With one thread a death is attributed to the one message that was executed; with several, to all of them.
    """
    for middleware in broker.middleware:
        if isinstance(middleware, RekindleMiddleware):
            middleware.delivered = DeliveredJobs(worker)
    consumer = dramatiq.Worker(broker, worker_threads=threads)
    consumer.start()
    worker.healthy()
    worker.wait()
    consumer.stop()
