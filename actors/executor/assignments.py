"""Pure: which task waits, which one runs where, and which one caused a death.

A worker is sent one task at a time and reports when it begins. A death is attributed to the task that
the worker had begun. A task that was only sent goes back to the front of the queue, and so does one
that caused a death and may be retried.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import msgspec

from ..deaths.death import Death

Incarnation = tuple[str, int]
"""A worker's id and generation."""


class Task(msgspec.Struct, eq=False):
    """A call, and the future of its outcome."""

    function: Callable[..., object]
    payload: bytes
    future: Future[Any]
    crash_retries: int = 0
    """How often it is run again after it crashed its worker."""
    timeout_s: float | None = None
    """How long it may run."""
    number: int = 0
    is_assigned: bool = False
    """Whether it was assigned to a worker, from when on it cannot be cancelled."""
    begun: bool = False
    deaths: tuple[Death, ...] = msgspec.field(default=())
    """The deaths that it caused."""


class Assignments:
    """The tasks of one executor."""

    def __init__(self) -> None:
        self._waiting: deque[Task] = deque()
        self._running: dict[Incarnation, Task] = {}
        self._deadlines: dict[Incarnation, float] = {}
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
            if task.is_assigned or task.future.set_running_or_notify_cancel():
                task.is_assigned, task.begun = True, False
                self._running[worker] = task
                return task
        return None

    def begun(self, worker: Incarnation, number: int, now_s: float) -> None:
        """The worker begins the task."""
        task = self._running.get(worker)
        if task is not None and task.number == number:
            task.begun = True
            if task.timeout_s is not None:
                self._deadlines[worker] = now_s + task.timeout_s

    def finished(self, worker: Incarnation, number: int) -> Task | None:
        """The task that the worker has finished; None if it has no such task."""
        task = self._running.get(worker)
        if task is None or task.number != number:
            return None
        return self._pop(worker)

    def wait_s(self, now_s: float) -> float | None:
        """How long until the next deadline of a task; None: there is none."""
        return max(0.0, min(self._deadlines.values()) - now_s) if self._deadlines else None

    def overdue(self, now_s: float) -> Iterator[tuple[Incarnation, Task]]:
        """Remove the tasks that have run for too long, with the workers that run them."""
        for worker in [worker for worker, deadline_s in self._deadlines.items() if deadline_s <= now_s]:
            task = self._pop(worker)
            if task is not None:
                yield worker, task

    def died(self, death: Death) -> tuple[Task | None, bool]:
        """The task that caused the death, if there is one, and whether it is given up."""
        task = self._pop((death.component_id, death.generation))
        if task is None:
            return None, False
        if not task.begun:
            self._waiting.appendleft(task)
            return None, False
        task.deaths = (*task.deaths, death)
        if len(task.deaths) > task.crash_retries:
            return task, True
        self._waiting.appendleft(task)
        return task, False

    def give_back(self, worker: Incarnation) -> None:
        """Queue the task of a worker that was stopped before it began it."""
        task = self._pop(worker)
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
        self._deadlines.clear()
        yield from running
        yield from self.withdraw()

    def _pop(self, worker: Incarnation) -> Task | None:
        """The task that the worker had, which it has no longer."""
        if self._deadlines:
            self._deadlines.pop(worker, None)
        return self._running.pop(worker, None)
