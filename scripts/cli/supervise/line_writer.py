"""Writes lines to a descriptor from a thread of its own, so that nobody waits for whoever reads them.

A terminal that was stopped by Ctrl-S, or a pipe that is not read, must not hold up the supervision.
What does not fit into the queue is dropped and counted.
"""

from __future__ import annotations

import os
import select
import threading
import time
from queue import Empty, SimpleQueue

MOST_LINES = 10_000
"""How many lines may wait for their reader."""

LAST_WORDS_S = 1.0
"""How long the end waits for a reader who may have gone."""

_AT_ONCE = 500


class LineWriter:
    """A stream as loguru wants one. Written to by one thread at a time, which loguru sees to."""

    def __init__(self, descriptor: int, most_lines: int = MOST_LINES) -> None:
        self._descriptor = descriptor
        self._most_lines = most_lines
        self._lines: SimpleQueue[str | None] = SimpleQueue()
        self._dropped = 0
        self._thread = threading.Thread(target=self._run, name="rekindle-log", daemon=True)
        self._thread.start()

    def write(self, message: str) -> None:
        """Have a line written, or drop it if too many wait already."""
        if self._lines.qsize() >= self._most_lines:
            self._dropped += 1
            return
        self._own_up()
        self._lines.put(message)

    def stop(self) -> None:
        """Wait for what was written, but not for long; loguru calls it when the log is closed."""
        self._own_up()
        self._lines.put(None)
        self._thread.join(LAST_WORDS_S)

    def isatty(self) -> bool:
        """Whether a person reads it; loguru gives such a stream its colours."""
        return os.isatty(self._descriptor)

    def confession(self, dropped: int) -> str:
        """The line that stands for those that are missing."""
        return f"{time.strftime('%H:%M:%S')}     WARNING {dropped} lines of log were dropped\n"

    def _own_up(self) -> None:
        if self._dropped:
            self._lines.put(self.confession(self._dropped))
            self._dropped = 0

    def _run(self) -> None:
        ended = False
        while not ended:
            lines = [self._lines.get()]
            try:
                while len(lines) < _AT_ONCE:
                    lines.append(self._lines.get_nowait())
            except Empty:
                pass
            ended = None in lines
            self._write("".join(filter(None, lines)).encode(errors="backslashreplace"))

    def _write(self, data: bytes) -> None:
        while data:
            try:
                # Not by way of sys.stderr: its lock would be held while this waits, and the
                # interpreter cannot end without it.
                data = data[os.write(self._descriptor, data) :]
            except BlockingIOError:
                select.select([], [self._descriptor], [])
            except OSError:
                return  # nobody reads it any more
