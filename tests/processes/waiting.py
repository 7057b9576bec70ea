"""Waiting for what happens outside of our own process: with a deadline, never with a guess."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self

from rekindle.actors import EventStream, Status, StatusChanged, WorkerStarted
from rekindle.actors.messages import Event, PauseBegan

PATIENCE_S = 20.0
"""Longer than every promised time: a wait that reaches it is a bug."""

_GLANCE_S = 0.005


def eventually(
    condition: Callable[[], object], within_s: float = PATIENCE_S, every_s: float = _GLANCE_S
) -> bool:
    """Whether the condition comes true by the deadline."""
    deadline = time.monotonic() + within_s
    never = threading.Event()
    while not condition():
        if time.monotonic() > deadline:
            return False
        never.wait(every_s)
    return True


class Held:
    """Handles of processes that need not be our children; a zombie has ended."""

    def __init__(self, pids: Iterable[int] = ()) -> None:
        self._handles: dict[int, int] = {}
        for pid in pids:
            try:
                self.add(pid)
            except ProcessLookupError:
                self.__exit__(None, None, None)
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for handle in self._handles.values():
            os.close(handle)

    def add(self, pid: int) -> None:
        """Hold one more; it must be there."""
        self._handles[pid] = os.pidfd_open(pid)

    def living(self) -> list[int]:
        """The ones that have not ended."""
        return [pid for pid, handle in self._handles.items() if not select.select([handle], [], [], 0)[0]]

    def all_end(self, within_s: float = PATIENCE_S) -> bool:
        """Whether all of them end by the deadline."""
        deadline = time.monotonic() + within_s
        return all(
            select.select([handle], [], [], max(0.0, deadline - time.monotonic()))[0]
            for handle in self._handles.values()
        )


def ended(pid: int) -> bool:
    """Whether the process is gone, or a zombie."""
    try:
        with Held([pid]) as held:
            return not held.living()
    except ProcessLookupError:
        return True


def later_news(events: EventStream, seconds: float) -> list[Event]:
    """The events in that time, except that a worker came up: that may have been on its way before."""
    return [event for event in events.within(seconds) if not _came_up(event)]


def _came_up(event: Event) -> bool:
    if isinstance(event, StatusChanged):
        return event.new is Status.HEALTHY
    return isinstance(event, WorkerStarted | PauseBegan)
