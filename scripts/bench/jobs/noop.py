"""What Rekindle's workers do with a job: nothing."""

from __future__ import annotations

from rekindle.worker.jobs import Job, JobWorker


class Noop(JobWorker):
    """Returns a result at once."""

    def process(self, job: Job) -> object:
        """Do nothing."""
        return job.payload
