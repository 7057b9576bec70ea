"""The workers that are Python functions: with heartbeats, and with jobs."""

from __future__ import annotations

import itertools
import signal
import threading
import time
from typing import Any

from rekindle.worker import Worker
from rekindle.worker.jobs import Job, JobWorker

from .fate import Fate, end
from .witness import Witness

TICK_S = 0.05
OVERRUN_S = 60.0


def beat(worker: Worker) -> None:
    """Live until it is asked to stop, or fate ends it."""
    witness = Witness()
    fate = Fate(witness)
    while not worker.wait(TICK_S):
        fate.strike()
    witness.note("asked")


def clerk(worker: Worker) -> None:
    """Execute jobs; each payload says what happens to it."""
    witness = Witness()
    fate = Fate(witness, mortal=0.1)

    def process(job: Job) -> object:
        lock = witness.begin(job.id, job.attempt, job.resumed)
        try:
            _act(witness, fate, job)
        except BaseException as error:  # a cancelled job ends with one that is not an Exception
            witness.done(lock, job.id, job.attempt, "error" if isinstance(error, ValueError) else "lost")
            raise
        witness.done(lock, job.id, job.attempt, "done")
        return {"attempt": job.attempt}

    JobWorker(worker, process=process).run()
    witness.note("asked")


def _save(witness: Witness, job: Job, data: str) -> None:
    """Store a checkpoint; it is known to be stored only once the call has returned."""
    witness.note("saving", job=job.id, attempt=job.attempt, data=data)
    job.checkpoint(data)
    witness.note("saved", job=job.id, attempt=job.attempt, data=data)


def _act(witness: Witness, fate: Fate, job: Job) -> None:
    payload: Any = job.payload
    if payload["do"] == "overrun":
        threading.Event().wait(OVERRUN_S)  # until its process is ended: it has a time limit
    until = time.monotonic() + float(payload["takes_s"])
    pause = threading.Event()
    for step in itertools.count():
        _save(witness, job, f"{job.attempt}:{step}")
        if time.monotonic() >= until:
            break
        pause.wait(TICK_S)
        fate.strike()
    match payload["do"]:
        case "die":
            end(witness, "signal", signal.SIGKILL)
        case "raise":
            raise ValueError("as the payload says")
        case _:
            pass
