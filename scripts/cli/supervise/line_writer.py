"""Writes log lines in a separate thread, so that a slow reader does not block the supervisor.

A terminal stopped with Ctrl-S, or a pipe that is not read, must not hold up supervision. Lines that
do not fit into the queue are dropped and counted.
"""

from __future__ import annotations

import os
import select
import threading
import time
from queue import Empty, SimpleQueue

MOST_LINES = 10_000
"""The length of the queue."""

CLOSE_S = 1.0
"""How long closing waits for the remaining lines to be read."""

_AT_ONCE = 500


class LineWriter:
    """A stream for loguru, which calls it from one thread at a time."""

    def __init__(self, descriptor: int, most_lines: int = MOST_LINES) -> None:
        self._descriptor = descriptor
        self._most_lines = most_lines
        self._lines: SimpleQueue[str | None] = SimpleQueue()
        self._dropped = 0
        self._thread = threading.Thread(target=self._run, name="rekindle-log", daemon=True)
        self._thread.start()

    def write(self, message: str) -> None:
        """Queue a line, or drop it if the queue is full."""
        if self._lines.qsize() >= self._most_lines:
            self._dropped += 1
            return
        self._report_dropped()
        self._lines.put(message)

    def stop(self) -> None:
        """Wait briefly until the queue is written; loguru calls it when it removes the sink."""
        self._report_dropped()
        self._lines.put(None)
        self._thread.join(CLOSE_S)

    def isatty(self) -> bool:
        """Whether it is a terminal; loguru colours terminals."""
        return os.isatty(self._descriptor)

    def dropped_notice(self, dropped: int) -> str:
        """The line that replaces the dropped ones."""
        return f"{time.strftime('%H:%M:%S')}     WARNING log: {dropped} lines were dropped\n"

    def _report_dropped(self) -> None:
        if self._dropped:
            self._lines.put(self.dropped_notice(self._dropped))
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
                # Not through sys.stderr: this would hold its lock while it waits, and the
                # interpreter needs the lock to exit.
                data = data[os.write(self._descriptor, data) :]
            except BlockingIOError:
                select.select([], [self._descriptor], [])
            except OSError:
                return  # the reader is gone
