"""The worker of the pictures' fleet that serves a queue."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from rekindle.worker.jobs import Job, JobWorker


class Mailer(JobWorker):
    """Simulates sending letters; one of them crashes it."""

    def process(self, job: Job) -> object:
        """Take about a second per letter."""
        letter: Any = job.payload
        print(f"to {letter['to']}: {letter['subject']}", flush=True)
        if letter.get("attachment") == "archive.zip":
            os.kill(os.getpid(), signal.SIGSEGV)
        time.sleep(1.2)
        return {"accepted": True}
