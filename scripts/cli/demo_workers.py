"""The workers of `rekindle demo`: imaginary jobs, and one worker that crashes."""

from __future__ import annotations

import os
import random
import signal

from rekindle.worker import Worker


def tag(worker: Worker) -> None:
    """Tag imaginary files, one after the other."""
    _work(worker, 0.4)


def library(worker: Worker) -> None:
    """Scan an imaginary library; every eighth job announces a recovery of two seconds."""
    number = 0
    while worker.running:
        number += 1
        _one_job(worker, number, 0.7)
        if number % 8 == 0:
            with worker.recovering(for_s=10):
                worker.wait(2.0)


def calibration(worker: Worker) -> None:
    """Work for a few seconds, then die: by an exception, or by a signal like a crash in C code."""
    seconds_left = random.uniform(3.0, 9.0)
    while seconds_left > 0 and worker.running:
        _one_job(worker, int(seconds_left * 10), 0.5)
        seconds_left -= 0.5
    if not worker.running:
        return
    if random.random() < 0.5:
        raise RuntimeError("invalid calibration data")
    os.kill(os.getpid(), signal.SIGSEGV)


def _work(worker: Worker, seconds: float) -> None:
    number = 0
    while worker.running:
        number += 1
        _one_job(worker, number, seconds)


def _one_job(worker: Worker, number: int, seconds: float) -> None:
    worker.wait_while_paused()
    with worker.job(number):
        worker.wait(seconds)
    worker.progress()
