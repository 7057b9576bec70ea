"""Pure: which task waits, which one runs where, and which one caused a death.

A worker is sent one task at a time and reports when it begins. A death is attributed to the task that
the worker had begun. A task that was only sent goes back to the front of the queue, and so does one
that caused a death and may be retried.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import msgspec

from ..deaths.death import Death

Incarnation = tuple[str, int]
"""A worker's id and generation."""


class Task(msgspec.Struct, eq=False):
    """A call, and the future of its outcome."""

    name: str
    payload: bytes
    future: Future[Any]
    number: int = 0
    begun: bool = False
    deaths: tuple[Death, ...] = msgspec.field(default=())
    """The deaths that it caused."""


class Assignments:
    """The tasks of one executor."""

    def __init__(self, crash_retries: int) -> None:
        self._crash_retries = crash_retries
        self._waiting: deque[Task] = deque()
        self._running: dict[Incarnation, Task] = {}
        self._count = 0

    @property
    def idle(self) -> bool:
        """Whether nothing is left to do."""
        return not self._waiting and not self._running

    def add(self, task: Task) -> None:
        """Queue a task."""
        self._count += 1
        task.number = self._count
        self._waiting.append(task)

    def assign(self, worker: Incarnation) -> Task | None:
        """Assign the next task that is not cancelled to this worker; None if there is none."""
        while self._waiting:
            task = self._waiting.popleft()
            if task.deaths or task.future.running() or task.future.set_running_or_notify_cancel():
                task.begun = False
                self._running[worker] = task
                return task
        return None

    def begun(self, worker: Incarnation, number: int) -> None:
        """The worker begins the task."""
        task = self._running.get(worker)
        if task is not None and task.number == number:
            task.begun = True

    def finished(self, worker: Incarnation, number: int) -> Task | None:
        """The task that the worker has finished; None if it has no such task."""
        task = self._running.get(worker)
        if task is None or task.number != number:
            return None
        return self._running.pop(worker)

    def died(self, death: Death) -> tuple[Task | None, bool]:
        """The task that caused the death, if there is one, and whether it is given up."""
        task = self._running.pop((death.component_id, death.generation), None)
        if task is None:
            return None, False
        if not task.begun:
            self._waiting.appendleft(task)
            return None, False
        task.deaths = (*task.deaths, death)
        if len(task.deaths) > self._crash_retries:
            return task, True
        self._waiting.appendleft(task)
        return task, False

    def give_back(self, worker: Incarnation) -> None:
        """Queue the task of a worker that was stopped before it began it."""
        task = self._running.pop(worker, None)
        if task is not None:
            self._waiting.appendleft(task)

    def withdraw(self) -> Iterator[Task]:
        """Remove all waiting tasks, and no running one."""
        while self._waiting:
            yield self._waiting.popleft()

    def drain(self) -> Iterator[Task]:
        """Remove all tasks: no worker is left."""
        running = tuple(self._running.values())
        self._running.clear()
        yield from running
        yield from self.withdraw()
