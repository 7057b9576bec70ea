"""An application for warm starts: it is imported once, and prints while it is."""

from __future__ import annotations

import ctypes
import os
import sys

from rekindle.worker import Worker

IMPORTED_BY = os.getpid()
sys.stdout.write("imported\n")


def serve(worker: Worker) -> None:
    """Say which process imported this module, and run until asked to stop."""
    sys.stdout.write(f"{os.getpid() != IMPORTED_BY} {worker.component_id} {worker.generation}\n")
    worker.wait()


def fail(worker: Worker) -> None:
    """End by an exception."""
    raise ValueError("trouble")


def crash(worker: Worker) -> None:
    """End by a segmentation fault."""
    ctypes.string_at(0)


def end_with_generation(worker: Worker) -> None:
    """End with an exit code that names this incarnation."""
    sys.exit(exit_code(worker.generation))


def exit_code(generation: int) -> int:
    """The code by which `end_with_generation` ends."""
    return 1 + generation % 250
