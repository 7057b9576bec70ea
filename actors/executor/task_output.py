"""Shows what tasks print on the host's own stdout and stderr, line by line."""

from __future__ import annotations

import sys
from collections import deque
from contextlib import suppress

from ..processes.watch.transcript import OutputLine

MOST_WAITING = 10_000
"""How many lines wait to be shown; the oldest are dropped if the host's terminal is too slow."""


class TaskOutput:
    """The lines that are not shown yet: added by the thread that watches the processes, shown by another."""

    def __init__(self) -> None:
        self._waiting: deque[OutputLine] = deque(maxlen=MOST_WAITING)

    def add(self, line: OutputLine) -> None:
        """Keep a line; never waits."""
        self._waiting.append(line)

    def show(self) -> None:
        """Write the lines; waits for a terminal that is slow."""
        while self._waiting:
            line = self._waiting.popleft()
            stream = sys.stdout if line.stream == "out" else sys.stderr
            with suppress(OSError, ValueError, AttributeError):  # the host has closed it, or has none
                stream.write(f"{line.text}\n")
                stream.flush()
