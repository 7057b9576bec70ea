"""Jobs from a queue: for workers that serve one.

    from rekindle.worker.jobs import Job, JobWorker

    class Tagger(JobWorker):
        def process(self, job: Job) -> object:
            return {"tags": tags_of(job.payload["path"])}

Apart from `rekindle.worker`, whose import stays as light as it was.
"""

from .job import Job
from .job_worker import JobWorker

__all__ = ["Job", "JobWorker"]
