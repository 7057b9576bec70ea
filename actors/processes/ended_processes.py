"""From the end of a process to its report.

Before the report, its last output is read, the lookup of its code is done, and what it detached is ended.
In most cases all of this is so already, and the report does not wait. It never waits for long: a process
that still writes may hold up the thread that reads the output, a file system the one that reads files.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from loguru import logger

from ..runtime.lanes import Call, attempt
from .cgroups.worker_cgroup import WorkerCgroup
from .child import Child
from .code_lookups import CodeLookups
from .detached_processes import DetachedProcesses
from .watch.epoll_loop import EpollLoop

PAUSE_S = 0.002
"""How long to wait before the next look at a killed control group."""
CGROUP_S = 2.0
"""How long the report of an end waits for it."""

WAIT_S = 0.5
"""How long the report of an end waits for the last output, and for the lookup of the code."""


class EndedProcesses:
    """Ended processes that are not reported yet. Used on the loop that watches the processes."""

    def __init__(
        self, loop: EpollLoop, outputs: EpollLoop, lookups: CodeLookups, left: DetachedProcesses | None
    ) -> None:
        self._loop = loop
        self._outputs = outputs
        self._lookups = lookups
        self._left = left
        self._unreported: set[Child] = set()

    def __len__(self) -> int:
        return len(self._unreported)

    def add(self, child: Child, report: Call) -> None:
        """A process has ended: make the call when everything is known of it."""
        self._unreported.add(child)
        go_on = partial(self._await_code, child, report)
        if _is_taken(child):
            go_on()
        else:
            self._await(lambda done: self._outputs.post(partial(_drain, child, done)), go_on)

    def _await_code(self, child: Child, report: Call) -> None:
        go_on = partial(self._end_left, child, report)
        if child.is_code_known:
            go_on()
        else:
            self._await(self._lookups.post, go_on)

    def _await(self, ask: Callable[[Call], None], go_on: Call) -> None:
        """Go on when another thread makes the call that it is given, or after the time limit."""
        once = [go_on]

        def answered() -> None:
            if once:
                once.pop()()

        ask(lambda: self._loop.post(answered))
        self._loop.after(WAIT_S, answered)

    def _end_left(self, child: Child, report: Call) -> None:
        go_on = partial(self._report, child, report)
        if not child.request.spec.stop.end_detached:
            go_on()
            return
        if child.cgroup is not None:
            child.kill_cgroup()
            go_on = partial(self._await_cgroup, child.cgroup, go_on, time.monotonic() + CGROUP_S)
        if self._left is None:
            go_on()
        else:
            self._left.end(child, go_on)

    def _await_cgroup(self, cgroup: WorkerCgroup, go_on: Call, deadline: float) -> None:
        """Go on when no process is left in the control group."""
        if cgroup.is_empty() or time.monotonic() > deadline:
            go_on()
        else:
            self._loop.after(PAUSE_S, lambda: self._await_cgroup(cgroup, go_on, deadline))

    def _report(self, child: Child, report: Call) -> None:
        self._unreported.discard(child)
        report()
        if child.cgroup is not None:  # after the report, which reads its counters
            child.cgroup.remove()


def _drain(child: Child, done: Call) -> None:
    """Read its last output. Runs on the thread that reads the output."""
    attempt(child.output.drain)
    done()


def _is_taken(child: Child) -> bool:
    try:
        return child.output.finish_at_once()
    except Exception as error:  # noqa: BLE001  # its death is reported even so
        log = logger.bind(worker=child.id).opt(exception=error)
        log.error("processes: cannot read the last output of {}", child.id)
        return False
