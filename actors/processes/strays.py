"""What workers leave behind: processes that left their worker's session, and orphans.

A supervisor that is a subreaper adopts orphans and has to reap them. It may do so only in a process of
its own; the children of a host belong to the host.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Container

waited_for: set[int] = set()
"""Children that are not workers and for which a thread waits, such as tools."""

waited_for_lock = threading.Lock()
"""Held while such a child is started and added to the set, so that it is not reaped in between."""


def reap_orphans(known: Container[int]) -> None:
    """Reap ended children until the next one is a known one.

    The kernel reports the same child until it is reaped. The owner of a known child reaps it soon, and the
    next call handles the children behind it.
    """
    with waited_for_lock:
        while True:
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                if found is None or found.si_pid in known or found.si_pid in waited_for:
                    return
                os.waitid(os.P_PID, found.si_pid, os.WEXITED | os.WNOHANG)
            except ChildProcessError:
                return


def session_of(pid: int) -> int | None:
    """The session that a process belongs to; None if it has ended."""
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None
