"""Adopts the orphans of dead workers and reaps them; as PID 1 of a container no other process would.

When a worker dies, its children lose their parent. The kernel reparents them to us, and each of them
stays a zombie after its end until we reap it.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PR_SET_CHILD_SUBREAPER = 36

PAUSE_S = 0.05
"""The pause after an ended child was seen: most are workers, which are reaped elsewhere."""

IDLE_S = 1.0
"""The pause while there are no children."""


@contextmanager
def adopt_orphans(reap: Callable[[], None]) -> Iterator[None]:
    """Adopt orphans, and call `reap` whenever a child has ended, until the block ends."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    ended = threading.Event()
    threading.Thread(target=_watch, args=(reap, ended), name="rekindle-reaper", daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def _watch(reap: Callable[[], None], ended: threading.Event) -> None:
    while not ended.is_set():
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        except ChildProcessError:
            ended.wait(IDLE_S)
            continue
        reap()
        ended.wait(PAUSE_S)
