"""Whether the machine is short of memory, as its kernel says (pressure stall information)."""

from __future__ import annotations

from contextlib import suppress

PRESSURE = "/proc/pressure/memory"
MOST_STALLED = 10.0
"""Memory is short while all processes together wait for it for more than this percentage of ten seconds."""


def is_memory_short(file: str = PRESSURE) -> bool:
    """Whether memory is short; False where the kernel does not say."""
    with suppress(OSError, ValueError, IndexError), open(file) as pressure:
        for line in pressure:
            kind, average, *_ = line.split()
            if kind == "full":
                return float(average.removeprefix("avg10=")) > MOST_STALLED
    return False
