"""Finds lines in a log file and its rotations, without reading more of them than is needed."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from typing import IO

from .log_files import opened, rotations
from .logged_line import LoggedLine, Wanted, read, stamp, stamp_of

BLOCK = 256 * 1024


def lines_since(path: str, wanted: Wanted) -> Iterator[LoggedLine]:
    """All wanted lines, oldest first."""
    for each in _recent(path, wanted):
        try:
            with opened(each) as file:
                if not each.endswith(".gz"):
                    _seek(file, wanted.since)
                yield from _matching(file, wanted)
        except (FileNotFoundError, EOFError):
            continue  # rotated away meanwhile


def last_lines(path: str, wanted: Wanted, most: int) -> list[LoggedLine]:
    """The last wanted lines, oldest first."""
    found: deque[LoggedLine] = deque()
    for each in reversed(_recent(path, wanted)):
        if len(found) >= most:
            break
        try:
            with opened(each) as file:
                newest_first = _last_of(file, wanted, most - len(found), is_plain=not each.endswith(".gz"))
                found.extendleft(newest_first)
        except (FileNotFoundError, EOFError):
            continue
    return list(found)


def _recent(path: str, wanted: Wanted) -> list[str]:
    """The files that may have wanted lines, oldest first."""
    recent = []
    for each in rotations(path):
        try:
            written_ms = os.stat(each).st_mtime_ns // 1_000_000
        except FileNotFoundError:
            continue
        if stamp(written_ms) >= wanted.since:
            recent.append(each)
    return recent


def _matching(file: IO[bytes], wanted: Wanted) -> Iterator[LoggedLine]:
    position, end = file.tell(), wanted.ends.get(os.fstat(file.fileno()).st_ino)
    for line in file:
        position += len(line)
        if not line.endswith(b"\n") or (end is not None and position > end):
            return  # not whole yet
        found = read(line[:-1])
        if found is not None and wanted.matches(found):
            yield found


def _last_of(file: IO[bytes], wanted: Wanted, most: int, *, is_plain: bool) -> list[LoggedLine]:
    """The last wanted lines of one file, newest first."""
    if not is_plain:
        return list(reversed(deque(_matching(file, wanted), maxlen=most)))
    found: list[LoggedLine] = []
    for line in _backward(file, wanted.ends.get(os.fstat(file.fileno()).st_ino)):
        logged = read(line)
        if logged is not None and logged.at < wanted.since:
            break
        if logged is not None and wanted.matches(logged):
            found.append(logged)
            if len(found) == most:
                break
    return found


def _backward(file: IO[bytes], end: int | None) -> Iterator[bytes]:
    """The lines of a file from its end; a last line without a line end is not whole yet."""
    position = file.seek(0, os.SEEK_END)
    position = position if end is None else min(position, end)
    begun = b""
    is_end = True
    while position > 0:
        size = min(BLOCK, position)
        position -= size
        file.seek(position)
        begun, *lines = (file.read(size) + begun).split(b"\n")
        if is_end and lines:
            lines.pop()
            is_end = False
        yield from reversed(lines)
    if not is_end:
        yield begun


def _seek(file: IO[bytes], since: str) -> None:
    """Go to a line that is not later than the first one of that time; the lines are in order of time."""
    low, high = 0, file.seek(0, os.SEEK_END)
    while since and high - low > BLOCK:
        middle = (low + high) // 2
        file.seek(middle)
        file.readline()
        at = stamp_of(file.readline())
        if at is not None and at < since:
            low = middle
        else:
            high = middle
    file.seek(low)
    if low:
        file.readline()
