"""Finds lines in a log file and its rotations, without reading more of them than is needed."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from typing import IO

from .log_files import UNREADABLE, opened, rotations
from .logged_line import LineFilter, LoggedLine, read, stamp, stamp_of

BLOCK = 256 * 1024
LONGEST_LINE = 512 * 1024
"""Longer lines are passed over; Rekindle cuts lines at 64 KiB, and JSON writes a byte as up to 6."""


def lines_since(path: str, wanted: LineFilter) -> Iterator[LoggedLine]:
    """All wanted lines, oldest first."""
    for each in _recent(path, wanted):
        try:
            with opened(each) as file:
                if not each.endswith(".gz"):
                    _seek(file, wanted.since)
                yield from _matching(file, wanted)
        except UNREADABLE:
            continue


def last_lines(path: str, wanted: LineFilter, most: int) -> list[LoggedLine]:
    """The last wanted lines, oldest first."""
    found: deque[LoggedLine] = deque()
    for each in reversed(_recent(path, wanted)):
        if len(found) >= most:
            break
        try:
            with opened(each) as file:
                newest_first = _last_of(file, wanted, most - len(found), is_plain=not each.endswith(".gz"))
                found.extendleft(newest_first)
        except UNREADABLE:
            continue
    return list(found)


def _recent(path: str, wanted: LineFilter) -> list[str]:
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


def _matching(file: IO[bytes], wanted: LineFilter) -> Iterator[LoggedLine]:
    for line in forward(file, wanted.ends.get(os.fstat(file.fileno()).st_ino)):
        found = None if line is None else read(line)
        if found is not None and wanted.matches(found):
            yield found


def _last_of(file: IO[bytes], wanted: LineFilter, most: int, *, is_plain: bool) -> list[LoggedLine]:
    """The last wanted lines of one file, newest first."""
    if not is_plain:
        return list(reversed(deque(_matching(file, wanted), maxlen=most)))
    found: list[LoggedLine] = []
    for line in backward(file, wanted.ends.get(os.fstat(file.fileno()).st_ino)):
        logged = None if line is None else read(line)
        if logged is not None and logged.at < wanted.since:
            break
        if logged is not None and wanted.matches(logged):
            found.append(logged)
            if len(found) == most:
                break
    return found


def forward(file: IO[bytes], end: int | None = None) -> Iterator[bytes | None]:
    """The whole lines of a file from where it stands; None for each part of a line that is too long."""
    position, is_cut = file.tell(), False
    while part := file.readline(LONGEST_LINE):
        position += len(part)
        is_whole = part.endswith(b"\n")
        if (end is not None and position > end) or (not is_whole and len(part) < LONGEST_LINE):
            return  # not whole yet
        yield part[:-1] if is_whole and not is_cut else None
        is_cut = not is_whole


def backward(file: IO[bytes], end: int | None) -> Iterator[bytes | None]:
    """The lines of a file from its end; a last line without a line end is not whole yet.

    Of a line that is too long each part is None.
    """
    position = file.seek(0, os.SEEK_END)
    position = position if end is None else min(position, end)
    begun, is_end, is_cut = b"", True, False
    while position > 0:
        size = min(BLOCK, position)
        position -= size
        file.seek(position)
        begun, *lines = (file.read(size) + begun).split(b"\n")
        if lines and (is_end or is_cut):
            lines.pop()
            is_end = is_cut = False
        yield from reversed(lines)
        if len(begun) > LONGEST_LINE:
            begun, is_cut = b"", True
            yield None
    if not is_end and not is_cut:
        yield begun


def _seek(file: IO[bytes], since: str) -> None:
    """Go to a line that is not later than the first one of that time; the lines are in order of time."""
    low, high = 0, file.seek(0, os.SEEK_END)
    while since and high - low > BLOCK:
        middle = (low + high) // 2
        file.seek(middle)
        file.readline(LONGEST_LINE)
        at = stamp_of(file.readline(LONGEST_LINE))
        if at is not None and at < since:
            low = middle
        else:
            high = middle
    file.seek(low)
    if low:
        file.readline(LONGEST_LINE)
