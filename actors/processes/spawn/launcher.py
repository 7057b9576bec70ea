"""The thread that starts processes, one after the other.

It outlives every actor, because a kernel takes the end of the thread that started a process for the
end of its parent (PR_SET_PDEATHSIG). It does little else: while the kernel makes a process of a
program (0.2 to 0.5 ms, however many there are), others see deaths and decide on them.

What is to be done about a new process waits until nothing was to be started for a moment. The
kernel runs us on the processor on which the process has just begun, and all that we did at once
would keep it from its first instruction.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from functools import partial
from queue import Empty

from ...runtime.lanes import Call, attempt
from ...runtime.mailbox import Mailbox

FIRST_STEPS_S = 0.002
"""How long nobody is to be started before something is done about those who were."""

MOST_ALONE = 128
"""So many are left alone at the most, while others are to be started."""


class Launcher:
    """One thread and its queue; `afterwards` is for what runs on it, all else for everybody."""

    def __init__(self) -> None:
        self._calls: Mailbox[Call | None] = Mailbox()
        self._afterwards: list[Call] = []
        self._thread = threading.Thread(target=self._run, name="rekindle-launcher", daemon=True)
        self._thread.start()

    def start(self, call: Call) -> None:
        """Have a call made that starts a process."""
        self._calls.put(call)

    def post(self, call: Call) -> None:
        """Have a call made once all is done about those who were to be started before."""
        self._calls.put(partial(self._settled, call))

    def afterwards(self, call: Call) -> None:
        """Have a call made about a process that was started, when it has had its moment."""
        self._afterwards.append(call)

    def close(self, timeout_s: float) -> bool:
        """End the thread once all that was posted is done; whether it ended in time."""
        self._calls.put(None)
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (call := self._next()) is not None:
            attempt(call)
        self._follow_up()

    def _next(self) -> Call | None:
        if 0 < len(self._afterwards) < MOST_ALONE:
            with suppress(Empty):
                return self._calls.get(FIRST_STEPS_S)
        self._follow_up()
        return self._calls.get()

    def _settled(self, call: Call) -> None:
        self._follow_up()
        call()

    def _follow_up(self) -> None:
        calls, self._afterwards = self._afterwards, []
        for call in calls:
            attempt(call)
