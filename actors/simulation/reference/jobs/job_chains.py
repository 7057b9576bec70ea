"""Pure: jobs that come after others, recomputed from the ends of those.

A job waits until every job before it is done, and is cancelled with the first of them that ends otherwise.
The job after a batch waits until every job of the batch has ended, however it did.
"""

from __future__ import annotations

from collections.abc import Mapping

from .known_job import KnownJob


class Chains:
    """What the end of a job means for others."""

    def __init__(self, jobs: Mapping[int, KnownJob]) -> None:
        self._jobs = jobs

    def ended(self, job: KnownJob) -> None:
        """A job has ended: those that wait for it begin to be due, or are cancelled with it."""
        for later in self._jobs.values():
            if job.number in later.after:
                self._free(later, job) if job.state == "done" else self._cancel(later)
        if job.batch is not None:
            self._end_batch(job.batch)

    def _free(self, later: KnownJob, done: KnownJob) -> None:
        later.after.discard(done.number)
        if later.state == "waiting" and not later.after:
            later.state = "pending"

    def _cancel(self, later: KnownJob) -> None:
        if later.state == "waiting":
            later.state = "cancelled"
            self.ended(later)

    def _end_batch(self, batch: int) -> None:
        members = [job for job in self._jobs.values() if job.batch == batch]
        last = next((job for job in self._jobs.values() if job.ends_batch == batch), None)
        if last is None or last.state != "waiting" or any(job.is_open for job in members):
            return
        done = sum(job.state == "done" for job in members)
        last.batch_counts = {
            "id": batch,
            "total": len(members),
            "done": done,
            "failed": len(members) - done,
        }
        last.state = "pending"
