"""A slot of the arena, written by a worker that is a Python function."""

from __future__ import annotations

import mmap
import os
import time

WORDS = 8


def write_slot(slot: int) -> None:
    """Say that this process runs in the slot."""
    now = time.monotonic_ns()
    with open(os.environ["BENCH_ARENA"], "r+b") as file:
        words = memoryview(mmap.mmap(file.fileno(), 0)).cast("Q")
    words[slot * WORDS + 1] = os.getpid()
    words[slot * WORDS + 2] = now
    words[slot * WORDS] += 1  # last, when the rest is written
