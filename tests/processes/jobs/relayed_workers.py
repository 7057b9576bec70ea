"""Workers that exchange jobs through their supervisor; also run by an interpreter that has nothing else."""

from __future__ import annotations

import os

from rekindle.worker import Worker
from rekindle.worker.jobs import Job, JobWorker


class Curious(JobWorker):
    """The result is everything that the worker could have learnt of the database."""

    def process(self, job: Job) -> object:
        return {
            "environment": dict(os.environ),
            "address": self.worker.database(),
            "uid": os.getuid(),
            "readable": [file for file in job.payload.get("files", ()) if os.access(file, os.R_OK)],
        }


if __name__ == "__main__":
    worker = Worker()
    worker.healthy()
    Curious.main(worker)
