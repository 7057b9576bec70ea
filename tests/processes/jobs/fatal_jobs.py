"""Jobs that kill their worker or the supervisor, while they run or right after their result is stored."""

from __future__ import annotations

import os
import signal
import threading

from tests.processes.job_workers import note

from rekindle.worker.jobs import Job, JobWorker
from rekindle.worker.jobs.claims import Claims, Ending, Exchanged


class Fatal(JobWorker):
    """Does so once for each job: `{"kills": "supervisor", "when": "during"}`."""

    def process(self, job: Job) -> object:
        note(f"began {job.id} {job.attempt}")
        if job.attempt == 1 and job.payload["when"] == "during":
            kill(job.payload["kills"])
        note(f"ended {job.id} {job.attempt}")
        return job.batch

    def _exchange(self, claims: Claims, ending: Ending | None) -> Exchanged:
        exchanged = super()._exchange(claims, ending)
        if ending is not None and '"after"' in ending.claim.payload:
            kill("supervisor" if "supervisor" in ending.claim.payload else "worker")
        return exchanged


def kill(whom: str) -> None:
    """End this process, or its supervisor and with it this process."""
    pid = int(os.environ.get("REKINDLE_SUPERVISOR_PID") or os.getppid())
    os.kill(os.getpid() if whom == "worker" else pid, signal.SIGKILL)
    threading.Event().wait(60.0)
