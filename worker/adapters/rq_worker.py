"""RQ workers: `rq worker --worker-class rekindle.worker.adapters.rq_worker.RekindleWorker`.

It executes jobs in its own process: the process that RQ would fork for each of them is replaced by the one
that Rekindle restarts. A job that crashed its workers too often fails with `JobRefusedError`.
"""

from __future__ import annotations

from typing import Any

from rq import SimpleWorker

from ..handle import Worker
from .delivered_jobs import DeliveredJobs, JobRefusedError


class RekindleWorker(SimpleWorker):  # type: ignore[misc, unused-ignore]
    """Reports its health, and every job from its beginning to its end."""

    def work(self, *args: Any, **named: Any) -> bool:
        """Work off the queues until it is asked to stop; the current job is finished first."""
        self.delivered = DeliveredJobs(Worker())
        self.delivered.stop_when_asked()
        self.delivered.worker.healthy()
        return bool(super().work(*args, **named))

    def perform_job(self, job: Any, queue: Any) -> bool:
        """Execute a job, unless Rekindle has set it aside."""
        try:
            self.delivered.begin(job.id, job.func_name)
        except JobRefusedError as error:
            self.handle_job_failure(job, queue, exc_string=f"{type(error).__name__}: {error}")
            return False
        done = bool(super().perform_job(job, queue))
        self.delivered.end(job.id, None if done else RuntimeError("the job raised; RQ has its traceback"))
        return done
