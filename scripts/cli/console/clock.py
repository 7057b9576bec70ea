"""The wall clock of the command line."""

from __future__ import annotations

import time


def now_ms() -> int:
    """The current wall-clock time, in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000
