"""A pool of multiprocessing: `python -m scripts.bench.peers.pool ARENA SLOTS`."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from multiprocessing.synchronize import Lock
from pathlib import Path

from ..arena import Arena
from .slots import write_slot


def begin(path: str, slots: int, lock: Lock) -> None:
    """Take the slot of a worker that has ended."""
    with lock:
        arena = Arena(Path(path), slots, create=False)
        write_slot(next(slot for slot in range(slots) if not _lives(arena[slot].pid)))


def _lives(pid: int) -> bool:
    try:
        os.kill(pid or 2**22, 0)
    except ProcessLookupError:
        return False
    return True


def main() -> None:
    """Keep the pool until the process is killed."""
    path, slots = sys.argv[1], int(sys.argv[2])
    with multiprocessing.get_context("fork").Pool(
        slots, initializer=begin, initargs=(path, slots, multiprocessing.Lock())
    ):
        signal.pause()


if __name__ == "__main__":
    main()
