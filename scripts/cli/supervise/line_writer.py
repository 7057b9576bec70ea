"""Writes log lines in a separate thread, so that a slow reader does not block the supervisor.

A terminal stopped with Ctrl-S, or a pipe that is not read, must not hold up supervision. Lines that
do not fit into the queue are dropped and counted.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Iterator
from queue import Empty, SimpleQueue
from typing import NamedTuple

MOST_LINES = 10_000
"""The length of the queue."""

CLOSE_S = 1.0
"""How long closing waits for the remaining lines to be read."""

_AT_ONCE = 500

HOLD_S = 1.0
"""How long lines wait for the start of their process, for example while the database is slow."""

MOST_HELD = 1000
"""How many lines wait, of all workers."""


class Line(NamedTuple):
    """A line of the log."""

    text: str
    worker: str = ""
    generation: int = 0
    starts: bool = False
    """It says that this generation of the worker has started."""
    is_output: bool = False
    """The worker wrote it."""


class StartOrder:
    """Puts the start of a process before its output, without losing a line.

    Another thread reads the output, and a start is logged once it is published: the first lines of a
    process may arrive before it. They are held until then, but not for long.
    """

    def __init__(self) -> None:
        self._started: dict[str, int] = {}
        """The latest generation of each worker whose lines need not wait."""
        self._held: list[tuple[float, Line]] = []

    def add(self, line: Line, now: float) -> Iterator[str]:
        """Take a line; what can be written now."""
        if line.is_output and line.generation > self._started.get(line.worker, -1):
            self._held.append((now, line))
            if len(self._held) > MOST_HELD:
                yield from self.release()
            return
        yield line.text
        if line.starts:
            self._started[line.worker] = line.generation
            yield from self._let_go()

    def overdue(self, now: float) -> Iterator[str]:
        """The lines that have waited long enough."""
        if self._held and now - self._held[0][0] >= HOLD_S:
            yield from self.release()

    def release(self) -> Iterator[str]:
        """All lines that wait; later ones of the same processes do not wait."""
        for _, line in self._held:
            self._started[line.worker] = max(line.generation, self._started.get(line.worker, -1))
        yield from self._let_go()

    def due_in_s(self, now: float) -> float | None:
        """When a line is overdue; None if no line waits."""
        return max(0.0, self._held[0][0] + HOLD_S - now) if self._held else None

    def _let_go(self) -> Iterator[str]:
        """The lines whose process has started."""
        held, self._held = self._held, []
        for at, line in held:
            if line.generation <= self._started.get(line.worker, -1):
                yield line.text
            else:
                self._held.append((at, line))


class LineWriter:
    """A stream for loguru, which calls it from one thread at a time."""

    def __init__(self, descriptor: int, most_lines: int = MOST_LINES) -> None:
        self._descriptor = descriptor
        self._most_lines = most_lines
        self._lines: SimpleQueue[Line | None] = SimpleQueue()
        self._dropped = 0
        self._thread = threading.Thread(target=self._run, name="rekindle-log", daemon=True)
        self._thread.start()

    def write(self, message: str) -> None:
        """Queue a line, or drop it if the queue is full."""
        if self._lines.qsize() >= self._most_lines:
            self._dropped += 1
            return
        self._report_dropped()
        self._lines.put(self.line(message))

    def line(self, message: str) -> Line:
        """What is written for a message of loguru."""
        return Line(message)

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
            self._lines.put(Line(self.dropped_notice(self._dropped)))
            self._dropped = 0

    def _run(self) -> None:
        order = StartOrder()
        ended = False
        while not ended:
            lines = self._next(order.due_in_s(time.monotonic()))
            ended = None in lines
            now = time.monotonic()
            texts = [text for line in lines if line is not None for text in order.add(line, now)]
            texts += order.release() if ended else order.overdue(now)
            self._write("".join(texts).encode(errors="backslashreplace"))

    def _next(self, within_s: float | None) -> list[Line | None]:
        """The lines that are queued; none if there are none within this time."""
        lines: list[Line | None] = []
        try:
            lines.append(self._lines.get(timeout=within_s))
            while len(lines) < _AT_ONCE:
                lines.append(self._lines.get_nowait())
        except Empty:
            pass
        return lines

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
