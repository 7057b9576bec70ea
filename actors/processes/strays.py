"""What workers leave behind: processes that left their worker's session, and orphans.

A supervisor that is a subreaper adopts orphans and has to reap them. It may do so only in a process of
its own; the children of a host belong to the host.

The kernel gives orphans to the first thread of the process. Workers are started by another thread, so the
children of the first one are the adopted ones.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Container
from contextlib import suppress

from rekindle.worker.guardian import is_zombie

PAUSE_S = 0.01

waited_for: set[int] = set()
"""Children that are not workers and for which a thread waits, such as tools."""

waited_for_lock = threading.Lock()
"""Held while such a child is started and added to the set, so that it is not reaped in between."""


def reap_orphans(is_known: Callable[[int], bool]) -> None:
    """Reap ended children until the next one is a known one.

    The kernel reports the same child until it is reaped. The owner of a known child reaps it soon, and the
    next call handles the children behind it.
    """
    with waited_for_lock:
        while True:
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                if found is None or is_known(found.si_pid) or found.si_pid in waited_for:
                    return
                os.waitid(os.P_PID, found.si_pid, os.WEXITED | os.WNOHANG)
            except ChildProcessError:
                return


def children_of(pid: int, thread: int | None = None) -> list[int]:
    """The children of a process, or of one thread of it, from the kernel's list."""
    found: list[int] = []
    with suppress(OSError):
        threads = os.listdir(f"/proc/{pid}/task") if thread is None else [thread]
        for each in threads:
            with suppress(OSError), open(f"/proc/{pid}/task/{each}/children", "rb") as file:
                found += map(int, file.read().split())
    return found


def descendants_of(pid: int) -> list[int]:
    """The children of a process, and theirs."""
    found: list[int] = []
    for child in children_of(pid):
        found += (child, *descendants_of(child))
    return found


def living_descendants(spared: Container[int]) -> list[int]:
    """The descendants of this process that have not ended, but not the spared children and theirs."""
    roots = [child for child in children_of(os.getpid()) if child not in spared]
    return [pid for root in roots for pid in (root, *descendants_of(root)) if not is_zombie(pid)]


def end_descendants(spared: Container[int], within_s: float) -> list[int]:
    """Kill the descendants of this process, except the spared ones; returns those that do not end."""
    deadline = time.monotonic() + within_s
    while (found := living_descendants(spared)) and time.monotonic() < deadline:
        for pid in found:
            kill(pid)
        time.sleep(PAUSE_S)
    return found


def kill(pid: int) -> None:
    """Kill a process that may end at any time. Only for descendants of this process, whose pids are not
    used again while it does not reap them."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def session_of(pid: int) -> int | None:
    """The session that a process belongs to; None if it has ended."""
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None
