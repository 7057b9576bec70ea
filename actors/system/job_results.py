"""The results of jobs as Python values, for a program that waits for them."""

from __future__ import annotations

import time
from typing import Any

from ..errors import JobFailedError, RequestTimeoutError
from ..facts.jobs import JobState, JobView

FIRST_PAUSE_S = 0.005
LONGEST_PAUSE_S = 0.25


class JobResults:
    """The part of every implementation of `Jobs` that waits for results."""

    def get(self, job_id: int) -> JobView:
        """One job, or `UnknownJobError`."""
        raise NotImplementedError

    def result(self, job_id: int, *, timeout_s: float = 0.0) -> Any:
        """What a job returned, decoded from JSON; waits up to this time for the end of the job.

        Raises:
            JobFailedError: it ended without a result: it failed, is toxic or expired, or was cancelled.
            RequestTimeoutError: it has not ended within this time.
            UnknownJobError: no job has that number.
        """
        deadline, pause_s = time.monotonic() + timeout_s, FIRST_PAUSE_S
        while (job := self.get(job_id)).state in (JobState.PENDING, JobState.RUNNING):
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise RequestTimeoutError(f"job {job_id} is {job.state}: it has no result yet")
            time.sleep(min(pause_s, left_s))
            pause_s = min(pause_s * 1.5, LONGEST_PAUSE_S)
        if job.state != JobState.DONE:
            raise JobFailedError(job_id, job.state, job.error)
        return job.result_value
