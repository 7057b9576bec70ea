"""The freeze of the process table: nothing more is reaped or read, and what was is reported."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

from ..child import Child
from ..ended_processes import EndedProcesses
from ..watch.epoll_loop import EpollLoop

PAUSE_S = 0.002
"""How often it looks whether all ends are reported."""


class HandOverFreeze:
    """Ends what the threads read; the loop continues with orders."""

    def __init__(self, loop: EpollLoop, outputs: EpollLoop, ended: EndedProcesses) -> None:
        self._loop = loop
        self._outputs = outputs
        self._ended = ended

    def freeze(self, living: Callable[[], Iterable[Child]], timeout_s: float) -> bool:
        """Stop to watch; whether all ends that were seen are reported, and the output thread has ended.

        In this order: the last output of a process that has ended is read before its end is reported.
        """
        deadline = time.monotonic() + timeout_s
        reported = threading.Event()
        self._loop.post(lambda: self._stop_watching(living(), reported))
        is_reported = reported.wait(timeout_s)
        self._outputs.post(self._outputs.end)
        return self._outputs.join(max(0.0, deadline - time.monotonic())) and is_reported

    def _stop_watching(self, living: Iterable[Child], reported: threading.Event) -> None:
        for child in living:
            for descriptor in child.descriptors():
                self._loop.unwatch(descriptor)
        self._await_reports(reported)

    def _await_reports(self, reported: threading.Event) -> None:
        if self._ended:
            self._loop.after(PAUSE_S, lambda: self._await_reports(reported))
        else:
            reported.set()
