"""The last output lines of all workers, numbered in one sequence, for clients that follow them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping

import msgspec
from msgspec.structs import replace

from ...runtime.lanes import attempt
from .output_tail import MOST_LINES as TAIL_LINES

MOST_LINES = 2000
"""How many lines of all workers together are kept."""


class OutputLine(msgspec.Struct, frozen=True, order=True):
    """A line that a worker wrote."""

    number: int
    """Grows by one with every line of any worker, until the supervisor ends."""
    component_id: str
    generation: int
    stream: str
    """`out` or `err`."""
    text: str
    at_wall_ms: int = 0
    """When the supervisor read it."""


class OutputLines(msgspec.Struct, frozen=True):
    """Some lines in the order in which they were written, and where to continue."""

    lines: tuple[OutputLine, ...]
    newest: int
    """The number of the newest line; ask for the lines after it next time."""
    lost: int
    """How many of the requested lines, of any worker, are no longer kept."""
    run: str
    """The run of the system: another run starts a new sequence."""


class Transcript:
    """Numbers the lines. For any thread."""

    def __init__(self, run: str = "") -> None:
        self.run = run
        self._lines: deque[OutputLine] = deque(maxlen=MOST_LINES)
        self.newest = 0
        self.follower: Callable[[OutputLine], None] | None = None
        """Called with every line, on the thread that reads them: it must not block."""
        self._numbering = threading.Lock()

    def take(self, component_id: str, generation: int, stream: str, text: str, at_wall_ms: int) -> OutputLine:
        """Number a line and keep it for a while."""
        with self._numbering:
            written = OutputLine(self.newest + 1, component_id, generation, stream, text, at_wall_ms)
            self._lines.append(written)
            self.newest = written.number
        follower = self.follower
        if follower is not None:
            attempt(lambda: follower(written))
        return written

    def take_over(self, lines: Iterable[OutputLine], newest: int) -> None:
        """Go on with the numbers of the former program of this process."""
        with self._numbering:
            self._lines.extend(lines)
            self.newest = newest

    @property
    def kept(self) -> tuple[OutputLine, ...]:
        """The lines that are kept."""
        return tuple(self._lines)

    def skip(self, lines: int) -> None:
        """Count lines that were written and are not kept."""
        with self._numbering:
            self.newest += lines

    def after(self, number: int) -> OutputLines:
        """The lines after that number; a number above the newest belongs to another supervisor."""
        kept = tuple(self._lines)  # copied at once: another thread may append
        newest = kept[-1].number if kept else 0
        begin = number if number <= newest else 0
        lines = tuple(line for line in kept if line.number > begin)
        return OutputLines(lines, newest, newest - begin - len(lines), self.run)


def lines_of(
    tails: Mapping[str, Iterable[OutputLine]], recent: OutputLines, after: int | None, last: int
) -> OutputLines:
    """Pure: the lines of some workers, after the line of that number, or the last lines of each.

    Args:
        tails: the last lines of each worker's latest start, which a noisy worker cannot displace.
        recent: the lines of all workers after that number, or all that are kept.
        after: the number, if there is one.
        last: how many of each, if there is none.
    """
    known: dict[str, set[OutputLine]] = {id_: set() for id_ in tails}
    for line in recent.lines:
        if line.component_id in known:
            known[line.component_id].add(line)
    for id_, tail in tails.items():
        known[id_] |= {line for line in tail if (after or 0) < line.number <= recent.newest}
    each = [sorted(lines) for lines in known.values()]
    if after is None:
        each = [lines[-last:] if last else [] for lines in each]
    chosen = tuple(sorted(line for lines in each for line in lines))
    # Lost lines of other workers are not lost for a client that follows these.
    lost = 0 if after is None or len(chosen) < TAIL_LINES else recent.lost
    return replace(recent, lines=chosen, lost=lost)
