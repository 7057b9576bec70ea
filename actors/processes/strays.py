"""What workers leave behind: processes that left their session, and ended children that are nobody's.

The latter come to us if we adopt them. Only a process that is ours alone may reap them; a host's
children are the host's.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Container

waited_for: set[int] = set()
"""Children that are no workers and have somebody who waits for them."""

waited_for_lock = threading.Lock()
"""Held while such a child is started and written down, so that nobody reaps it in between."""


def reap_orphans(known: Container[int]) -> None:
    """Take the status of ended children, until one of the known ones comes first.

    The kernel shows the same one until it is reaped. A known one soon will be, by whoever knows
    it, and what is behind it is for the next look.
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
