"""A checkpoint that cannot be stored because the database is away is not the fault of its job."""

from __future__ import annotations

from typing import Any, cast

from rekindle.worker import Worker
from rekindle.worker.jobs import Job, JobWorker
from rekindle.worker.jobs.claims import Claim, Claims, QueueUnavailableError
from rekindle.worker.jobs.executions.executions import Executions


class Away:
    """Claims whose database is away; the worker is asked to stop meanwhile."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def save(self, claim: Claim, checkpoint: str) -> bool:
        self._worker.stop()
        raise QueueUnavailableError("away")


class Saving(JobWorker):
    def process(self, job: Job) -> object:
        job.checkpoint("half")
        return "not reached"


def test_a_job_whose_checkpoint_waits_when_the_worker_is_asked_to_stop_is_given_back() -> None:
    """It counted as an error of the job, which is final without retries."""
    worker = Worker()
    serving: Any = Saving(worker, queues=["tag"], database="unused.db")
    serving._executions = Executions(lambda: cast("Claims", Away(worker)))
    claim = Claim(1, "tag", "{}", 1, 0, 0, None, alone=False)
    ending = serving._execute(claim, cast("Claims", Away(worker)))
    assert (ending.state, ending.values) == ("pending", {})
