"""Be the parent of what workers leave behind, and reap it. As PID 1 of a container nobody else would.

A worker that dies leaves its own children without a parent. The kernel gives them to us, and every
one of them that ends would stay as a zombie until we do.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PR_SET_CHILD_SUBREAPER = 36

PAUSE_S = 0.05
"""Between two looks while somebody has ended: most of them are workers, which are reaped elsewhere."""

IDLE_S = 1.0
"""Between two looks while there is no child at all."""


@contextmanager
def adopting(reap: Callable[[], None]) -> Iterator[None]:
    """Adopt orphans from now on, and call `reap` while there is an ended child, until the block ends."""
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
