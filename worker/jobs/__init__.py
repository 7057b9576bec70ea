"""For workers that process jobs from queues.

    from rekindle.worker.jobs import Job, JobWorker

    class Tagger(JobWorker):
        def process(self, job: Job) -> object:
            return {"tags": tags_of(job.payload["path"])}

Separate from `rekindle.worker`, to keep the import of that one light.
"""

from .executions.execution import ClaimLostError, JobCancelledError, JobTimeoutError
from .job import Job
from .job_worker import JobWorker
from .relayed.relay_queue import JobRefusedError, Unique

__all__ = [
    "ClaimLostError",
    "Job",
    "JobCancelledError",
    "JobRefusedError",
    "JobTimeoutError",
    "JobWorker",
    "Unique",
]
