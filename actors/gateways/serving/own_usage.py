"""What this process uses."""

from __future__ import annotations

import os
import platform
import threading
from pathlib import Path

import msgspec

MB = 1024 * 1024


class OwnUsage(msgspec.Struct, frozen=True):
    """The interpreter, memory, threads and descriptors of this process."""

    python: str
    memory_mb: float | None
    threads: int
    descriptors: int | None


def own_usage() -> OwnUsage:
    """What it uses now; None where the kernel does not tell."""
    return OwnUsage(platform.python_version(), _memory_mb(), threading.active_count(), _descriptors())


def _memory_mb() -> float | None:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE") / MB


def _descriptors() -> int | None:
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return None
