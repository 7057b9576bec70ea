"""What Rekindle's workers do with a job: nothing, or write down when it starts."""

from __future__ import annotations

import time

from rekindle.worker.jobs import Job, JobWorker


class Noop(JobWorker):
    """Returns a result at once."""

    def process(self, job: Job) -> object:
        """Do nothing."""
        return job.payload


class Stamp(JobWorker):
    """Writes the time into the file that the payload names."""

    def process(self, job: Job) -> object:
        """Write down when the job starts."""
        now = time.time_ns()
        with open(job.payload, "a") as file:
            file.write(f"{now}\n")
        return None
