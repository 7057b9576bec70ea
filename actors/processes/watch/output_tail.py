"""The last lines that a worker wrote, bounded in number and length."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

Line = TypeVar("Line")

MOST_LINES = 200
LONGEST_LINE = 4096

_SHOWN = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if code != ord("\t")}


def shown(data: bytes) -> str:
    """Several lines of a worker's as text that steers no terminal."""
    return "\n".join(line.translate(_SHOWN) for line in data.decode("utf-8", "backslashreplace").split("\n"))


class OutputTail(Generic[Line]):
    """Splits output into lines and keeps the last ones.

    A line without an end is cut. Bytes that are not UTF-8 and control characters are escaped:
    a worker must not control the terminal on which its lines are read.
    """

    __slots__ = ("_lines", "_made", "_partial", "dropped")

    def __init__(self, made: Callable[[int, str], Line]) -> None:
        """Keep lines that `made` creates from a stream's number and a text."""
        self._made = made
        self._lines: deque[Line] = deque(maxlen=MOST_LINES)
        self._partial: dict[int, bytes] = {}
        self.dropped = 0

    def feed(self, stream: int, data: bytes) -> Iterator[Line]:
        """Add output of one stream; the lines that it completes."""
        *whole, rest = (self._partial.get(stream, b"") + data).split(b"\n")
        if len(rest) > LONGEST_LINE:
            whole.append(rest)
            rest = b""
        self._partial[stream] = rest
        for line in whole:
            yield self._keep(stream, line)

    def skip(self, stream: int, lines: int) -> None:
        """Some lines of a stream were not fed; what was left of the line before them is dropped."""
        self._partial.pop(stream, None)
        self.dropped += lines

    def finish(self) -> Iterator[Line]:
        """The streams have ended: last lines without a line end count."""
        for stream, rest in self._partial.items():
            if rest:
                yield self._keep(stream, rest)
        self._partial.clear()

    def rests(self) -> dict[int, bytes]:
        """The beginnings of lines whose end was not written yet, by stream."""
        return {stream: rest for stream, rest in self._partial.items() if rest}

    def take_over(self, lines: Iterable[Line], rests: Mapping[int, bytes], dropped: int) -> None:
        """Go on where the former program of this process stopped to read."""
        self._lines.extend(lines)
        self._partial.update(rests)
        self.dropped = dropped

    def last(self, most: int = MOST_LINES) -> tuple[Line, ...]:
        """The last lines, oldest first."""
        kept = tuple(self._lines)  # copied at once: another thread may append
        return kept[max(0, len(kept) - most) :]

    def _keep(self, stream: int, line: bytes) -> Line:
        text = line[:LONGEST_LINE].decode("utf-8", "backslashreplace").rstrip("\r").translate(_SHOWN)
        if len(self._lines) == MOST_LINES:
            self.dropped += 1
        made = self._made(stream, text)
        self._lines.append(made)
        return made
