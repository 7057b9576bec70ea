"""Follows a log file across its rotations, as `tail -F` does."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import IO

from .log_files import UNREADABLE, opened, rotations
from .logged_line import LineFilter, LoggedLine, read

MOST_AT_ONCE = 4 * 1024 * 1024
"""How much is read at a time."""
LONGEST_LINE = 1024 * 1024


class LogTail:
    """The lines that are added to a log file from now on."""

    def __init__(self, path: str, wanted: LineFilter) -> None:
        self._path = path
        self._wanted = wanted
        self._file: IO[bytes] | None = None
        self._begun = b""
        self._open()
        if self._file is not None:
            _seek_last_line_end(self._file)

    @property
    def begin(self) -> dict[int, int]:
        """Where it begins, by the inode number of the file."""
        return {} if self._file is None else {os.fstat(self._file.fileno()).st_ino: self._file.tell()}

    def new_lines(self) -> Iterator[LoggedLine]:
        """The wanted lines since the last call."""
        if self._file is None:
            self._open()
        while self._file is not None:
            yield from self._rest(self._file)
            following = self._following(self._file)
            if not following:
                return
            for each in following[:-1]:
                with suppress(*UNREADABLE), opened(each) as file:
                    yield from self._rest(file)
            self._file.close()
            self._open()

    def close(self) -> None:
        """Follow it no more."""
        if self._file is not None:
            self._file.close()

    def _open(self) -> None:
        self._begun = b""
        try:
            self._file = open(self._path, "rb")  # noqa: SIM115  # closed after the rotation
        except OSError:
            self._file = None

    def _rest(self, file: IO[bytes]) -> Iterator[LoggedLine]:
        if file is self._file and os.fstat(file.fileno()).st_size < file.tell():
            file.seek(0)  # another program has cut it
        while data := file.read(MOST_AT_ONCE):
            *lines, self._begun = (self._begun + data).split(b"\n")
            for line in lines:
                found = read(line)
                if found is not None and self._wanted.matches(found):
                    yield found

    def _following(self, file: IO[bytes]) -> list[str]:
        """The files that were begun after this one, which has been rotated; none if it has not been."""
        mine = os.fstat(file.fileno()).st_ino
        files = rotations(self._path)
        if not files or files[-1] != self._path or _inode(self._path) == mine:
            return []
        numbers = [_inode(each) for each in files]
        return files[numbers.index(mine) + 1 :] if mine in numbers else files[-1:]


def _seek_last_line_end(file: IO[bytes]) -> None:
    """Go behind the last whole line: the supervisor may be in the middle of a write."""
    size = file.seek(0, os.SEEK_END)
    begin = file.seek(max(0, size - LONGEST_LINE))
    file.seek(begin + file.read(size - begin).rfind(b"\n") + 1)


def _inode(path: str) -> int | None:
    try:
        return os.stat(path).st_ino
    except OSError:
        return None
