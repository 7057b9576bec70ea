"""The part of the pictures' fleet that works through a queue."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from rekindle.worker.jobs import Job, JobWorker


class Mailer(JobWorker):
    """Sends imaginary letters; one of them is too much for it."""

    def process(self, job: Job) -> object:
        """Take a second for each."""
        letter: Any = job.payload
        print(f"to {letter['to']}: {letter['subject']}", flush=True)
        if letter.get("attachment") == "archive.zip":
            os.kill(os.getpid(), signal.SIGSEGV)
        time.sleep(1.2)
        return {"accepted": True}
