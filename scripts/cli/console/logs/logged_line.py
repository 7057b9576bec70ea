"""Pure: the lines of log files as `rekindle.actors.processes.logs.log_lines` writes them."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ...render.text import printable

_AT = rb"2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
_TEXT = re.compile(rb"(" + _AT + rb") (\S+) (\d{1,15}) (\w+) \| (.*)", re.DOTALL)
_STAMP = re.compile(rb'(?:\{"at":")?(' + _AT + rb")")


class LoggedLine(NamedTuple):
    """A line of a log file."""

    at: str
    """When the supervisor read it, in UTC; earlier times sort before later ones."""
    worker: str
    generation: int
    stream: str
    """`out`, `err`, or `log` for a notice of the supervisor."""
    text: str

    def document(self) -> dict[str, Any]:
        """The line as the supervisor would return it; its control characters are escaped."""
        return {
            "number": None,
            "component_id": self.worker,
            "generation": self.generation,
            "stream": self.stream,
            "text": shown_text(self.text),
            "at_wall_ms": wall_ms(self.at),
        }


class LineFilter(NamedTuple):
    """Which lines are wanted."""

    workers: Collection[str]
    since: str = ""
    """A stamp; earlier lines are left out."""
    pattern: re.Pattern[str] | None = None
    ends: Mapping[int, int] = {}
    """Where to end in files, by their inode numbers: what comes after is followed."""

    def matches(self, line: LoggedLine) -> bool:
        """Whether a line is wanted."""
        if line.worker not in self.workers or line.at < self.since:
            return False
        return self.pattern is None or self.pattern.search(line.text) is not None


def shown_text(text: str) -> str:
    """A text as the supervisor would return it; its control characters are escaped, but tabs."""
    return "\t".join(printable(part) for part in text.rstrip("\r").split("\t"))


def stamp(wall_ms: int) -> str:
    """A time as it stands in a file."""
    seconds, ms = divmod(wall_ms, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{ms:03}Z"


def wall_ms(at: str) -> int | None:
    """The time that stands in a file; None if there is no such time."""
    try:
        return round(datetime.fromisoformat(at).timestamp() * 1000)
    except ValueError:
        return None


def stamp_of(line: bytes) -> str | None:
    """The time of a line; None if the line is not one of ours."""
    found = _STAMP.match(line)
    return None if found is None else found[1].decode()


def read(line: bytes) -> LoggedLine | None:
    """A line of a file, without its line end; None if it is not one of ours."""
    if line.startswith(b"{"):
        return _read_json(line)
    found = _TEXT.fullmatch(line)
    if found is None:
        return None
    at, worker, generation, stream, text = (
        part.decode("utf-8", "backslashreplace") for part in found.groups()
    )
    return None if wall_ms(at) is None else LoggedLine(at, worker, int(generation), stream, text)


def _read_json(line: bytes) -> LoggedLine | None:
    try:
        found = json.loads(line)
        read = LoggedLine(*(found[name] for name in LoggedLine._fields))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    texts = (read.at, read.worker, read.stream, read.text)
    if type(read.generation) is not int or not all(isinstance(text, str) for text in texts):
        return None
    is_time = _STAMP.fullmatch(read.at.encode(errors="replace")) and wall_ms(read.at) is not None
    return read if is_time and 0 <= read.generation < 10**15 and read.stream.isascii() else None
