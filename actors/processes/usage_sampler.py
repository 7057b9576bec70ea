"""What processes use, from /proc. psutil is imported by the first sample."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from ..facts.usage import Usage
from .strays import descendants_of

if TYPE_CHECKING:
    import psutil

MB = 1024 * 1024


class _Mark(msgspec.Struct, frozen=True):
    """The CPU time that a process tree had used at some moment."""

    began: float
    at: float
    cpu_s: float


class UsageSampler:
    """Samples process trees."""

    def __init__(self) -> None:
        self._marks: dict[int, _Mark] = {}
        self._busy = threading.Lock()

    def usage_while(self, pid: int, is_alive: Callable[[], bool]) -> Usage | None:
        """What a process and its descendants use; None if it was reaped by the time that this is known."""
        with self._busy:
            usage = self._usage(pid)
            # If it was reaped meanwhile, its pid may already belong to another process.
            if not is_alive():
                self._marks.pop(pid, None)
                return None
            return usage

    def _usage(self, pid: int) -> Usage | None:
        """What this process and its descendants use together; None if it has ended."""
        import psutil

        try:
            root = psutil.Process(pid)
            began, cpu_s = root.create_time(), _cpu_s(root)
            memory = root.memory_info().rss
            threads, descriptors = root.num_threads(), _descriptors(root)
        except psutil.NoSuchProcess:
            self._marks.pop(pid, None)
            return None
        for process in _descendants(pid):
            # A process that ends meanwhile does not count.
            with suppress(psutil.Error):
                memory += process.memory_info().rss
                threads += process.num_threads()
                cpu_s += _cpu_s(process)
                descriptors = _sum(descriptors, _descriptors(process))
        return Usage(
            memory_mb=memory / MB,
            cpu_percent=self._cpu_percent(pid, began, cpu_s),
            threads=threads,
            descriptors=descriptors,
        )

    def _cpu_percent(self, pid: int, began: float, cpu_s: float) -> float:
        now = time.monotonic()
        before = self._marks.get(pid)
        if before is None or before.began != began:
            before = _Mark(began, now - max(0.0, time.time() - began), 0.0)
        self._marks[pid] = _Mark(began, now, cpu_s)
        passed = now - before.at
        # The time of a descendant that ended is lost: a smaller sum than before counts as none.
        return max(0.0, cpu_s - before.cpu_s) / passed * 100 if passed > 0 else 0.0


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _descriptors(process: psutil.Process) -> int | None:
    """None for a process of another user, whose descriptors cannot be read."""
    import psutil

    try:
        return int(process.num_fds())
    except psutil.AccessDenied:
        return None


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def _descendants(pid: int) -> Iterator[psutil.Process]:
    """The descendants of a process.

    psutil reads every process of the system to find them, which costs more than the whole sample.
    """
    import psutil

    for each in descendants_of(pid):
        with suppress(psutil.NoSuchProcess):
            yield psutil.Process(each)
