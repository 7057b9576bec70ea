"""Puts the jobs of a batch into their queues."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from typing import Unpack

from ...facts.queues import BatchAdded
from ...ports import Jobs
from ...spec.job_payload import JobSettings, checked_batch, checked_queue, new_jobs
from .current_trace import with_trace


def add_batch(
    jobs: Jobs,
    served: Collection[str],
    queue: str,
    payloads: Iterable[object],
    then: object,
    then_queue: str | None = None,
    **settings: Unpack[JobSettings],
) -> BatchAdded:
    """Add jobs, all or none, and one that runs once, when all of them have ended."""
    queues = (checked_queue(queue, served), checked_queue(then_queue or queue, served))
    now_wall_ms = time.time_ns() // 1_000_000
    settings = with_trace(settings)
    new = new_jobs(payloads, now_wall_ms, **settings)
    (last,) = new_jobs([then], now_wall_ms, traceparent=settings.get("traceparent"))
    return jobs.add_batch(queues[0], checked_batch(new), last, queues[1])
