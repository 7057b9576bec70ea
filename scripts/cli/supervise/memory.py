"""What a process does for its memory that runs the supervisor and nothing else.

In a host's process these are the host's to decide.
"""

from __future__ import annotations

import gc

from .code_pages import give_back_code

COLLECT_AFTER = 10_000
"""So many more objects than before are worth a look by the collector (the interpreter's own default
of 700 has it look every few restarts, which takes 3 % of a restart's time)."""


def settle() -> None:
    """Call it once everything runs: what is there by now stays, and need not be looked at again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER)
    give_back_code()
