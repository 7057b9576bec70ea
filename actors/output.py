"""The last lines that a worker wrote, within bounds."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice

MOST_LINES = 200
LONGEST_LINE = 4096

_SHOWN = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if code != ord("\t")}


def shown(data: bytes) -> str:
    """Several lines of a worker's as text that steers no terminal."""
    return "\n".join(line.translate(_SHOWN) for line in data.decode("utf-8", "backslashreplace").split("\n"))


class OutputTail:
    """Splits what arrives into lines and keeps the last of them.

    Text that never ends its line is cut. Bytes that are not UTF-8 are shown as escapes, and so
    are control characters: a worker must not write on the terminal of whoever reads its lines.
    """

    __slots__ = ("_lines", "_partial", "dropped")

    def __init__(self) -> None:
        self._lines: deque[tuple[int, str]] = deque(maxlen=MOST_LINES)
        self._partial: dict[int, bytes] = {}
        self.dropped = 0

    def feed(self, stream: int, data: bytes) -> Iterator[str]:
        """Take in what one stream gave; the lines that it completes."""
        *whole, rest = (self._partial.get(stream, b"") + data).split(b"\n")
        if len(rest) > LONGEST_LINE:
            whole.append(rest)
            rest = b""
        self._partial[stream] = rest
        for line in whole:
            yield self._keep(stream, line)

    def finish(self) -> Iterator[str]:
        """The streams have ended: what is left of their last lines counts too."""
        for stream, rest in self._partial.items():
            if rest:
                yield self._keep(stream, rest)
        self._partial.clear()

    def lines(self, most: int = MOST_LINES) -> tuple[str, ...]:
        """The last lines, oldest first."""
        return tuple(text for _, text in self.labelled(most))

    def labelled(self, most: int = MOST_LINES) -> tuple[tuple[int, str], ...]:
        """The same, each with the stream that it came from."""
        return tuple(islice(self._lines, max(0, len(self._lines) - most), None))

    def _keep(self, stream: int, line: bytes) -> str:
        text = line[:LONGEST_LINE].decode("utf-8", "backslashreplace").rstrip("\r").translate(_SHOWN)
        if len(self._lines) == MOST_LINES:
            self.dropped += 1
        self._lines.append((stream, text))
        return text
