"""`BootClock`: the clock of leases, which the guardian of a node reads too."""

from __future__ import annotations

import time


class BootClock:
    """A clock that continues while the machine sleeps, for what a lease allows."""

    @staticmethod
    def monotonic() -> float:
        """Seconds since the start of the machine."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    @staticmethod
    def wall_ms() -> int:
        """Milliseconds since 1970."""
        return time.time_ns() // 1_000_000
