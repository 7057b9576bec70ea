"""The thread that starts processes, one after the other.

It outlives every actor, because the kernel takes the end of the thread that started a process for the
end of its parent (PR_SET_PDEATHSIG).

A new process is registered after a pause in which no further start is requested. The kernel runs the
launcher on the processor on which the process has just begun, so registering it at once would delay its
first instruction; and with a hundred starts at once the last one would wait for 99 registrations. Without
the pause a hundred killed workers take 18 to 22 % longer until all run again. A process that started alone
waits less: its end is not noticed before it is registered, and one that is killed again at once would take
twice as long to return.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from queue import Empty
from typing import TypeVar

from ...runtime.lanes import Call, attempt
from ...runtime.mailbox import Mailbox

T = TypeVar("T")

PAUSE_S = 0.002
"""How long no start must be requested before new processes are registered."""

LONE_PAUSE_S = 0.0003
"""The same for a single process."""

MOST_UNREGISTERED = 128
"""How many processes may wait for that while further starts are requested."""


class Launcher:
    """One thread and its queue. `afterwards` is for calls that run on it; any thread may use the rest."""

    def __init__(self, *, own_thread: bool = True) -> None:
        """Have a thread of its own, or work in the one that calls `work`.

        `rekindle run` starts its workers in the first thread of its process: that one does not end with an
        upgrade, which executes another program, and the others do.
        """
        self._calls: Mailbox[Call | None] = Mailbox()
        self._afterwards: list[Call] = []
        self._ended = threading.Event()
        if own_thread:
            threading.Thread(target=self.work, name="rekindle-launcher", daemon=True).start()

    def start(self, call: Call) -> None:
        """Have a call made that starts a process."""
        self._calls.put(call)

    def post(self, call: Call) -> None:
        """Have a call made after all processes that were requested before are registered."""
        self._calls.put(partial(self._settled, call))

    def afterwards(self, call: Call) -> None:
        """Have the call made that registers a process, after the pause."""
        self._afterwards.append(call)

    def is_busy(self) -> bool:
        """Whether further calls wait."""
        return len(self._calls) > 0

    def settle(self, timeout_s: float) -> bool:
        """Wait until all processes that were requested are registered; whether that was so in time."""
        done = threading.Event()
        self.post(done.set)
        return done.wait(timeout_s)

    def ask(self, call: Callable[[], T]) -> T:
        """Have a call made, and wait for what it returns or raises. Not for calls that run on it."""
        outcome: Future[T] = Future()

        def made() -> None:
            try:
                outcome.set_result(call())
            except BaseException as error:  # noqa: BLE001  # the caller gets it
                outcome.set_exception(error)

        self.post(made)
        return outcome.result()

    def close(self, timeout_s: float) -> bool:
        """Make the calls that are queued, then end the thread; whether it ended in time."""
        self._calls.put(None)
        return self._ended.wait(timeout_s)

    def work(self) -> None:
        """Make the calls, until the launcher is closed."""
        while (call := self._next()) is not None:
            attempt(call)
        self._follow_up()
        self._ended.set()

    def _next(self) -> Call | None:
        unregistered = len(self._afterwards)
        if 0 < unregistered < MOST_UNREGISTERED:
            with suppress(Empty):
                return self._calls.get(LONE_PAUSE_S if unregistered == 1 else PAUSE_S)
        self._follow_up()
        return self._calls.get()

    def _settled(self, call: Call) -> None:
        self._follow_up()
        call()

    def _follow_up(self) -> None:
        calls, self._afterwards = self._afterwards, []
        for call in calls:
            attempt(call)
