"""Ends what a worker left behind when it ended: processes that left its process group.

Only for a supervisor that adopts orphans. Which worker an adopted process came from is told by the mark in
its resource limit, which it inherited from the worker's start. What has no such mark is not ended here, but
when the supervisor ends. All of this reads the kernel's own files and waits for nothing, so that it can run
on the thread that watches the processes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Container

from loguru import logger

from rekindle.worker.guardian import is_zombie, marked_processes, marked_start

from ..deaths.death import Exit
from ..deaths.left_processes import daemon_hint, listed
from ..runtime.lanes import Call
from ..spec.program import Command
from .child import Child
from .spawn.start_marks import StartMarks
from .strays import children_of, descendants_of, kill
from .watch.epoll_loop import EpollLoop

PAUSE_S = 0.002
"""How long to wait before the next look at killed processes."""

MOST_S = 2.0
"""How long the report of an end waits for them."""


class DetachedProcesses:
    """Looks for what workers left, and ends it. Used on the loop only."""

    def __init__(
        self, mark: str, marks: StartMarks, loop: EpollLoop, known: Callable[[], Container[int | None]]
    ) -> None:
        self._mark = mark
        self._marks = marks
        self._loop = loop
        self._known = known
        """The children that are not adopted."""

    def end(self, child: Child, then: Call) -> None:
        """End what an ended worker left, then make the call; at once if it left nothing."""
        left = self._left_by(child)
        child.left = tuple(left)
        if left:
            run = child.request.spec.run
            command = run.argv if isinstance(run, Command) else ()
            hint = daemon_hint(child.exit or Exit(), round(child.lived_s * 1000), left, command)
            what = hint or f"left {listed(left)}; the supervisor ends what is left"
            logger.bind(worker=child.id).warning("processes: {} {}", child.id, what)
        self._continue(child, left, then, time.monotonic() + MOST_S)

    def _continue(self, child: Child, left: list[int], then: Call, deadline: float) -> None:
        if not left:
            then()
        elif time.monotonic() > deadline:
            log = logger.bind(worker=child.id)
            log.error("processes: {} left processes that do not end: {}", child.id, listed(left))
            then()
        else:
            for pid in left:
                kill(pid)
            self._loop.after(PAUSE_S, lambda: self._continue(child, self._left_by(child), then, deadline))

    def _left_by(self, child: Child) -> list[int]:
        """What the worker left, in this start or an earlier one, and what that started."""
        own = os.getpid()
        found: list[int] = []
        adopted = children_of(own, thread=own)
        if not adopted:
            return found
        known = self._known()
        for pid in adopted:
            if pid not in known and self._came_from(pid, child) and not _reaped(pid):
                found += (pid, *(each for each in descendants_of(pid) if not is_zombie(each)))
        return found

    def _came_from(self, pid: int, child: Child) -> bool:
        start = marked_start(pid, self._mark)
        return start is not None and self._marks.is_of(start, child.id, until=child.start)


def stray_processes(mark: str, marks: StartMarks | None) -> list[tuple[int, str]]:
    """The marked processes of the system, with the worker that each came from."""
    found = marked_processes(mark)
    if marks is None:
        return found
    # Other users can read the limit and give it to their own processes, which are not our descendants.
    ours = set(descendants_of(os.getpid()))
    return [
        (pid, id_ or marks.worker_of(marked_start(pid, mark))) for pid, id_ in found if id_ or pid in ours
    ]


def _reaped(pid: int) -> bool:
    """Reap an adopted process if it has ended; whether it had."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG) is not None
    except ChildProcessError:
        return True
