"""Pure: some lines of a worker's output, found from the newest to the oldest, a page at a time."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

import msgspec

_SGR = re.compile(r"\\x1b\[[0-9;:]*m")
"""The selection of a colour, as the supervisor escapes it."""


class LogQuery(msgspec.Struct, frozen=True):
    """Which lines are wanted."""

    limit: int = 200
    find: str = ""
    """A text that the lines contain, in any case; colours are not part of a line's text."""
    stream: str = ""
    """`out` or `err`; empty: both."""
    generation: int | None = None
    before: int | None = None
    """Only lines until then, in wall-clock milliseconds."""
    seen: int = 0
    """How many of the wanted lines of the very millisecond `before` are known already."""

    def matches(self, line: LogLine) -> bool:
        """Whether a line is wanted, whenever it was written."""
        if self.stream and line.stream != self.stream:
            return False
        if self.generation is not None and line.generation != self.generation:
            return False
        return not self.find or self.find.lower() in without_colours(line.text).lower()


class LogLine(msgspec.Struct, frozen=True):
    """A line that a worker wrote."""

    component_id: str
    generation: int
    stream: str
    """`out`, `err`, or `log` for a notice of the supervisor."""
    text: str
    at_wall_ms: int
    """When the supervisor read it."""


class LogPage(msgspec.Struct, frozen=True):
    """The lines that were found, oldest first, and where to continue."""

    lines: tuple[LogLine, ...]
    source: Literal["file", "memory"]
    """Memory: the worker has no log file, and only its last lines are kept."""
    before: int | None
    """With `seen`, where the next page begins; null: there are no older lines."""
    seen: int = 0


class Cursor(NamedTuple):
    """A place between two wanted lines."""

    before: int
    seen: int


class PageSearch:
    """Takes lines from the newest to the oldest, until a page is full."""

    def __init__(self, query: LogQuery) -> None:
        self._query = query
        self._to_skip = query.seen
        self._found: list[LogLine] = []
        self._begin = self._cursor = Cursor(query.before or 0, query.seen)

    @property
    def has_moved(self) -> bool:
        """Whether the next page would begin elsewhere than this one."""
        return self._cursor != self._begin

    @property
    def is_full(self) -> bool:
        """Whether no further line is wanted."""
        return len(self._found) >= self._query.limit

    def take(self, line: LogLine) -> None:
        """Look at the next older line."""
        before = self._query.before
        if self.is_full or (before is not None and line.at_wall_ms > before):
            return
        self.pass_by(line.at_wall_ms)
        if not self._query.matches(line):
            return
        if line.at_wall_ms == before and self._to_skip > 0:
            self._to_skip -= 1
            return
        self._cursor = self._cursor._replace(seen=self._cursor.seen + 1)
        self._found.append(line)

    def pass_by(self, at_wall_ms: int) -> None:
        """Note the time of the next older line, which is not wanted."""
        before = self._query.before
        if at_wall_ms != self._cursor.before and (before is None or at_wall_ms <= before):
            self._cursor = Cursor(at_wall_ms, 0)

    def page(self, source: Literal["file", "memory"], *, is_end: bool) -> LogPage:
        """What was found; `is_end`: every line has been looked at."""
        lines = tuple(reversed(self._found))
        return (
            LogPage(lines, source, None)
            if is_end and not self.is_full
            else LogPage(lines, source, *self._cursor)
        )


def page_of(lines: Iterable[LogLine], query: LogQuery) -> LogPage:
    """A page of lines that are in memory, given oldest first."""
    search = PageSearch(query)
    for line in reversed(tuple(lines)):
        search.take(line)
    return search.page("memory", is_end=True)


def without_colours(text: str) -> str:
    """The text that a terminal shows."""
    return _SGR.sub("", text) if "\\x1b[" in text else text
