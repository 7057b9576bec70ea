"""The worker of the arena as a Python function, run by Rekindle's runner."""

from __future__ import annotations

import mmap
import os
import time

from rekindle.worker import Worker

WORDS = 8


def serve(worker: Worker) -> None:
    """Write the slot that the worker's id names, then wait to be killed."""
    now = time.monotonic_ns()
    slot = int(worker.component_id.rpartition(":")[2])
    with open(os.environ["BENCH_ARENA"], "r+b") as file:
        words = memoryview(mmap.mmap(file.fileno(), 0)).cast("Q")
    words[slot * WORDS + 1] = os.getpid()
    words[slot * WORDS + 2] = now
    words[slot * WORDS] += 1  # last, when the rest is written
    worker.wait()
