"""Settings of the garbage collector for a process that runs only the supervisor.

In a host's process they are the host's decision.
"""

from __future__ import annotations

import gc
import threading

COLLECT_AFTER = 10_000
"""The collection threshold. Python's default of 700 collects every few restarts, which takes 3 % of a
restart's time."""


SETTLE_S = 1.0
"""How long after the start of the workers memory is settled: no first start waits for that."""


def load_undisturbed() -> None:
    """Collect no garbage until `settle`: while modules are loaded there is little, and looking takes time."""
    gc.disable()


def settle_soon() -> None:
    """Settle in a moment."""
    timer = threading.Timer(SETTLE_S, settle)
    timer.daemon = True
    timer.start()


def settle() -> None:
    """Exclude all current objects from garbage collection. Call it once, after the start."""
    gc.enable()  # off in a program that takes over
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER)
    gc.enable()


def end_undisturbed() -> None:
    """Let the process end without a search for garbage: a tenth of the CPU time of a short run."""
    gc.freeze()
