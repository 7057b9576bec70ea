"""What one process writes, cut into whole lines for its log file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from .log_file import LogFile, Piece

if TYPE_CHECKING:
    from .log_writer import LogWriter

LONGEST_LINE = 64 * 1024
"""A longer line is cut."""


class WorkerLog:
    """The log of one process. For one thread at a time."""

    def __init__(self, writer: LogWriter, file: LogFile, worker: str, generation: int) -> None:
        self._writer = writer
        self._file = file
        self._worker = worker
        self._generation = generation
        self._partial: dict[str, bytes] = {}

    @property
    def is_full(self) -> bool:
        """Whether its output has to wait until the disk has written more."""
        return self._writer.is_full(self._file)

    @property
    def rests(self) -> dict[str, bytes]:
        """The beginnings of lines whose end was not written yet, by stream."""
        return {stream: rest for stream, rest in self._partial.items() if rest}

    def take_over(self, rests: Mapping[str, bytes]) -> None:
        """Go on where the former program of this process stopped to read."""
        self._partial.update(rests)

    def take(self, stream: str, data: bytes, at_wall_ms: int) -> None:
        """Have the lines of some output written; the end of the last one may follow."""
        end = data.rfind(b"\n") + 1
        rest = data[end:]
        before = self._partial.get(stream, b"")
        if end == 0 and len(before) + len(rest) < LONGEST_LINE:
            self._partial[stream] = before + rest
            return
        if end == 0 or len(rest) >= LONGEST_LINE:
            data, end, rest = data + b"\n", len(data) + 1, b""
        self._partial[stream] = rest
        self._add(stream, before + data[:end], at_wall_ms)

    def finish(self, at_wall_ms: int) -> None:
        """The process has ended: last lines without a line end are written, too."""
        for stream, rest in self._partial.items():
            if rest:
                self._add(stream, rest + b"\n", at_wall_ms)
        self._partial.clear()

    def _add(self, stream: str, data: bytes, at_wall_ms: int) -> None:
        piece = Piece(self._worker, self._generation, stream, at_wall_ms, data)
        self._writer.add(self._file, piece)
