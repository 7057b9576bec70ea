"""Settings of the garbage collector for a process that runs only the supervisor.

In a host's process they are the host's decision.
"""

from __future__ import annotations

import gc

COLLECT_AFTER = 10_000
"""The collection threshold. Python's default of 700 collects every few restarts, which takes 3 % of a
restart's time."""


def settle() -> None:
    """Exclude all current objects from garbage collection. Call it once, after the start."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER)
