"""The jobs that a worker has begun to execute, noted where its supervisor finds them after its death.

A worker can die between the commit of its claim and the beginning of the execution. Such a job did not
cause the death. The note is written to memory that outlives the process: the part of the file of the crash
dump (`worker/crash_dump.py`) that follows the dump. It costs no system call.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from . import crash_dump

HEADER = struct.Struct("<8sI")
MAGIC = b"rkdljobs"
EXECUTION = struct.Struct("<qq")
"""One for each job that the worker executes at a time: the job's number, and which attempt it is."""

OFFSET = 16
SIZE = 4 * 1024

Note = Callable[[int, tuple[int, int]], None]
"""Called with the number of the thread, the job's number and its attempt, right before the execution."""


def noted_by(concurrency: int) -> Note:
    """What a worker calls for each job that it begins; it does nothing where no supervisor reads it."""
    fd = crash_dump.file_descriptor
    if fd is None or OFFSET + concurrency * EXECUTION.size > SIZE:
        return _ignore
    import mmap

    try:
        memory = mmap.mmap(fd, SIZE, offset=crash_dump.CRASH_DUMP_SIZE)
    except (OSError, ValueError):
        return _ignore  # the file of an older supervisor ends with the crash dump
    HEADER.pack_into(memory, 0, MAGIC, concurrency)

    def note(thread: int, execution: tuple[int, int]) -> None:
        EXECUTION.pack_into(memory, OFFSET + thread * EXECUTION.size, *execution)

    return note


def read(memory: bytes) -> tuple[tuple[int, int], ...] | None:
    """The latest executions of a process that has ended; None if it noted none, or overwrote them."""
    if len(memory) < SIZE:
        return None
    magic, concurrency = HEADER.unpack_from(memory, 0)
    if magic != MAGIC or OFFSET + concurrency * EXECUTION.size > SIZE:
        return None
    executions = (
        EXECUTION.unpack_from(memory, OFFSET + thread * EXECUTION.size) for thread in range(concurrency)
    )
    return tuple((job, attempt) for job, attempt in executions if job)


def _ignore(thread: int, execution: tuple[int, int]) -> None:
    pass
