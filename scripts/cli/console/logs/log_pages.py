"""Finds a page of lines in a log file and its rotations, from the newest to the oldest."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import IO

import msgspec

from rekindle.actors.processes.logs.log_lines import NOTICE
from rekindle.actors.views.log_page import LogLine, LogPage, LogQuery, PageSearch

from .log_files import UNREADABLE, rotations
from .log_search import BLOCK, LONGEST_LINE, backward, forward
from .logged_line import read, shown_text, stamp, stamp_of, wall_ms

LONGEST_S = 2.0
"""How long a request searches; the next one continues from there."""
LATEST_S = 6.0
"""When a request ends that has not found where the next one could continue."""
WORKS_S = 0.002
"""How long a search works before it pauses for other threads."""
RESTS_S = 0.001
MOST_TEXT = 32 * 1024 * 1024
"""How much text of lines is decoded for a page, which is in memory as a whole."""
MOST_FOREIGN = 16 * 1024 * 1024
"""After so much between two lines of Rekindle the rest of a file is passed over: another program wrote it."""

ESCAPES = (b"\x1b", b"\\u001b")
"""How a colour begins in a file, which may divide a word, as text and as JSON."""

OpenFile = Callable[[str], AbstractContextManager[IO[bytes]]]
"""Opens a log file, compressed or not."""


def page(
    path: str,
    worker: str,
    query: LogQuery,
    open_file: OpenFile,
    longest_s: float = LONGEST_S,
    *,
    gives_way: bool = False,
) -> LogPage:
    """The newest wanted lines of a worker before the place that the query names.

    Args:
        path: the log file.
        worker: the id of the worker.
        query: what is wanted.
        open_file: opens the file and its rotations.
        longest_s: how long it searches.
        gives_way: whether to rest again and again, so that no other thread of the process waits for it.
    """
    begin = rested = time.monotonic()
    search, reader, text = PageSearch(query), _Reader(worker, query), 0
    for each in reversed(rotations(path)):
        try:
            with open_file(each) as file:
                for line in reader.compressed(file) if each.endswith(".gz") else reader.plain(file):
                    text += _look(search, line)
                    now = time.monotonic()
                    if gives_way and now > rested + WORKS_S:
                        time.sleep(RESTS_S)
                        rested = now = time.monotonic()
                    spent_s = now - begin
                    is_late = spent_s > longest_s or text > MOST_TEXT
                    if search.is_full or (is_late and search.has_moved):
                        return reader.noted(search.page("file", is_end=False))
                    if spent_s > LATEST_S:
                        return reader.stopped(search, each)
        except UNREADABLE:
            continue
        except _ForeignFileError:
            reader.pass_over(each, f"{MOST_FOREIGN >> 20} MiB of it have no line of Rekindle")
    return reader.noted(search.page("file", is_end=True))


def _look(search: PageSearch, found: LogLine | int | None) -> int:
    """Take a line, or pass by the time of one that cannot match; returns the length of its text."""
    if isinstance(found, LogLine):
        search.take(found)
        return len(found.text)
    if found is not None:
        search.pass_by(found)
    return 0


class _ForeignFileError(Exception):
    """Another program wrote the file, or a part of it."""


class _Reader:
    """Decodes the lines of one worker; most lines of a search are known not to match before that."""

    def __init__(self, worker: str, query: LogQuery) -> None:
        self._worker = worker
        self._query = query
        self._needle = _needle(query.find)
        self._until = None if query.before is None else stamp(query.before + 1)
        self._foreign = 0
        self._oldest: int | None = None
        self._notes: list[str] = []

    def plain(self, file: IO[bytes]) -> Iterator[LogLine | int | None]:
        """The lines of a file, newest first; of a line that cannot match only its time, if it has one."""
        self._foreign, self._oldest = 0, None
        end = None if self._until is None else _end(file, self._until)
        for line in backward(file, end):
            at = self._time(line)
            yield at if line is None or at is None else self._line(line) or at

    def compressed(self, file: IO[bytes]) -> Iterator[LogLine | None]:
        """The wanted lines of a file that can only be read from its beginning, newest first.

        Before them, None for each line that is read, so that the caller can look at the clock.
        """
        self._foreign, self._oldest = 0, None
        wanted: deque[LogLine] = deque(maxlen=self._query.limit + self._query.seen)
        text = 0
        for line in forward(file):
            at = self._time(line)
            if self._until is not None and line is not None and (stamp_of(line) or "") >= self._until:
                break
            if self._oldest is None:
                self._oldest = at
            found = None if line is None or at is None else self._line(line)
            if found is not None and self._query.matches(found):
                text += len(found.text) - (len(wanted[0].text) if len(wanted) == wanted.maxlen else 0)
                wanted.append(found)
                while text - len(wanted[0].text) > MOST_TEXT:  # the caller takes no more than that
                    text -= len(wanted.popleft().text)
            yield None
        yield from reversed(wanted)

    def pass_over(self, path: str, reason: str) -> None:
        """Note that the rest of a file is not searched."""
        self._notes.append(f"rekindle: {os.path.basename(path)} is not searched to its end: {reason}")

    def stopped(self, search: PageSearch, path: str) -> LogPage:
        """The page of a search that takes too long in a file; the next one begins before this file."""
        self.pass_over(path, f"it takes longer than {LATEST_S:g} s")
        if self._oldest is not None:
            search.pass_by(self._oldest - 1)
        return self.noted(search.page("file", is_end=not search.has_moved))

    def noted(self, page: LogPage) -> LogPage:
        """The page, before its lines a notice for each file that is passed over."""
        at = page.lines[0].at_wall_ms if page.lines else page.before or self._query.before or 0
        notes = (LogLine(self._worker, 0, NOTICE, note, at) for note in self._notes)
        return msgspec.structs.replace(page, lines=(*notes, *page.lines))

    def _time(self, line: bytes | None) -> int | None:
        """The time of a line.

        Raises:
            _ForeignFileError: too much of the file has none.
        """
        at = None if line is None else stamp_of(line)
        found = None if at is None else wall_ms(at)
        self._foreign = 0 if found is not None else self._foreign + (BLOCK if line is None else len(line) + 1)
        if self._foreign > MOST_FOREIGN:
            raise _ForeignFileError
        return found

    def _line(self, line: bytes) -> LogLine | None:
        if self._needle and self._needle not in line.lower() and not any(each in line for each in ESCAPES):
            return None
        found = read(line)
        if found is None or found.worker != self._worker:
            return None
        at = wall_ms(found.at)
        text = shown_text(found.text)
        return None if at is None else LogLine(self._worker, found.generation, found.stream, text, at)


def _needle(find: str) -> bytes:
    """What a line that matches contains byte for byte, if it has no colours; empty: unknown."""
    is_plain = find.isascii() and find.isprintable() and not set(find) & {"\\", '"'}
    return find.lower().encode() if is_plain else b""


def _end(file: IO[bytes], until: str) -> int:
    """A position behind all lines that are earlier, which are in order of time, and not far behind them."""
    low, high = 0, file.seek(0, os.SEEK_END)
    while high - low > BLOCK:
        middle = (low + high) // 2
        file.seek(middle)
        file.readline(LONGEST_LINE)
        at = stamp_of(file.readline(LONGEST_LINE))
        if at is None or at < until:
            low = middle
        else:
            high = middle
    file.seek(high)
    file.readline(LONGEST_LINE)
    return file.tell()
