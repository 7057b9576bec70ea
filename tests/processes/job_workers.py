"""Workers that serve queues, as the tests have them supervised. A job's payload says what happens to it."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from rekindle.worker import Worker
from rekindle.worker.jobs import Job, JobWorker
from rekindle.worker.jobs.claims import Claims, Ending, Exchanged


class Obedient(JobWorker):
    """Does what the payload says, and notes every execution in the file NOTES, if there is one."""

    def process(self, job: Job) -> object:
        note(f"began {job.id} {job.attempt} {os.getpid()}")
        result = act(job)
        note(f"ended {job.id} {job.attempt} {os.getpid()}")
        return result


class KilledAfterTheClaim(JobWorker):
    """Is killed three times between the claim of a job and the beginning of its execution."""

    def _exchange(self, claims: Claims, ending: Ending | None) -> Exchanged:
        exchanged = super()._exchange(claims, ending)
        if exchanged.claim is not None and exchanged.claim.attempt < 4:
            os.kill(os.getpid(), signal.SIGKILL)
        return exchanged

    def process(self, job: Job) -> object:
        return job.attempt


class Resumed(JobWorker):
    """Counts to ten in steps that it stores, and is killed in the middle of each."""

    def process(self, job: Job) -> object:
        begun_at = job.resumed or 0
        for step in range(begun_at + 1, 11):
            job.checkpoint(step)
            if step % 4 == 0 and step != begun_at:
                os.kill(os.getpid(), signal.SIGKILL)
        return {"begun_at": begun_at, "attempt": job.attempt}


class Adding(JobWorker):
    """Adds a job, and one after it."""

    def process(self, job: Job) -> object:
        queue, number = job.payload["adds"]
        first = self.enqueue(queue, {"number": number}, priority=-1)
        return [first, *self.enqueue_many(queue, [{"then": number}], after=[first])]


async def patient(job: Job) -> object:
    """Waits in asyncio until it is cancelled, and notes that it could clean up."""
    note(f"began {job.id} {job.attempt} {os.getpid()}")
    try:
        await asyncio.sleep(1000)
    finally:
        note(f"cleaned up {job.id}")
    return None


def patient_worker(worker: Worker) -> None:
    JobWorker(worker, process=patient).run()


def hold_the_interpreter() -> None:
    """Sleep in C without releasing the interpreter: no other thread of this process can run."""
    while True:
        ctypes.PyDLL(None).sleep(1000)  # a signal interrupts it


def act(job: Job) -> object:
    """What the payload says, if anything."""
    payload: Any = job.payload
    match payload.get("do") if isinstance(payload, dict) else None:
        case "die":
            sys.stderr.write("about to die\n")
            sys.stderr.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        case "die until" if job.attempt < payload["attempt"]:
            os.kill(os.getpid(), signal.SIGKILL)
        case "exit":
            sys.exit(payload["code"])
        case "hang":
            os.kill(os.getpid(), signal.SIGSTOP)
        case "raise until" if job.attempt < payload["attempt"]:
            raise ValueError(payload["why"])
        case "raise":
            raise ValueError(payload.get("why", "no reason"))
        case "hold the interpreter":
            hold_the_interpreter()
        case "ignore everything":
            while True:
                time.sleep(0.05)
        case "until cancelled":
            while not job.cancelled:
                time.sleep(0.005)
            return "dropped"
        case "show progress":
            for step in range(1, 1_000_000):
                job.progress(step, 1_000_000, "working")
                time.sleep(0.005)
        case "wait for":
            Path(f"{payload['file']}.begun").touch()
            wait_for(Path(payload["file"]), job)
        case "finish although asked to stop":
            while not job.stopping:
                time.sleep(0.005)
        case "return":
            return "x" * payload["bytes"]
        case "show trace":
            return job.traceparent
        case "not json":
            return object()
        case _:
            pass
    return {"attempt": job.attempt, "pid": os.getpid()}


def wait_for(file: Path, job: Job) -> None:
    while not file.exists():
        job.progress()
        time.sleep(0.005)


def note(line: str) -> None:
    """One write, so that lines of several processes stay whole."""
    notes = os.environ.get("NOTES")
    if notes is not None:
        descriptor = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(descriptor, f"{line}\n".encode())
        os.close(descriptor)


def elsewhere(worker: Worker) -> None:
    """Serves the queues of another database than its supervisor's."""
    JobWorker(worker, process=act, database=os.environ["ELSEWHERE"]).run()


def as_a_function(worker: Worker) -> None:
    JobWorker(worker, process=act).run()


async def _later(job: Job) -> object:
    return {"async": job.id}


def asynchronous(worker: Worker) -> None:
    JobWorker(worker, process=_later).run()


def show_environment(worker: Worker) -> None:
    """The job's result is everything that the worker could have learnt from its environment."""
    JobWorker(worker, process=lambda job: {"environment": dict(os.environ), "argv": sys.argv}).run()
