"""What all workers wrote last, numbered in one sequence, for whoever follows them."""

from __future__ import annotations

from collections import deque

import msgspec

MOST_LINES = 2000
"""So many lines of all workers together are kept for those who follow."""


class Written(msgspec.Struct, frozen=True, order=True):
    """A line that a worker wrote."""

    number: int
    """Grows by one with every line, of whichever worker, for as long as the supervisor lives."""
    component_id: str
    generation: int
    stream: str
    """`out` or `err`."""
    text: str


class Lines(msgspec.Struct, frozen=True):
    """Some lines in the order in which they came, and where to go on."""

    lines: tuple[Written, ...]
    newest: int
    """The number of the last line of all; ask for what came after it."""
    lost: int
    """How many were asked for that are not kept any longer, whoever wrote them."""
    run: str
    """Which system's lines these are: another one numbers its own anew."""


class Transcript:
    """Written by one thread, read by any."""

    def __init__(self, run: str = "") -> None:
        self.run = run
        self._lines: deque[Written] = deque(maxlen=MOST_LINES)
        self.newest = 0

    def take(self, component_id: str, generation: int, stream: str, text: str) -> Written:
        """Number a line, and keep it for a while."""
        written = Written(self.newest + 1, component_id, generation, stream, text)
        self._lines.append(written)
        self.newest = written.number
        return written

    def after(self, number: int) -> Lines:
        """What came after that line; a number that is yet to come was another supervisor's."""
        kept = tuple(self._lines)  # at once: more may be written meanwhile
        newest = kept[-1].number if kept else 0
        begin = number if number <= newest else 0
        oldest = kept[0].number if kept else 1
        lines = tuple(line for line in kept if line.number > begin)
        return Lines(lines, newest, max(0, oldest - 1 - begin), self.run)
