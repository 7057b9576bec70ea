"""Pure: the lines of a log file, written and read back.

    2026-11-18T09:51:34.123Z worker:web:0 3 out | listening on port 8000
    {"at":"2026-11-18T09:51:34.123Z","worker":"worker:web:0","generation":3,"stream":"out","text":"listening"}

What a worker wrote stands in a text file as it was written, except that each line has a beginning of ours.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

import msgspec

from ...spec.policies.log_policy import LogFormat

NOTICE = "log"
"""The stream of a line that the supervisor wrote itself."""


class LoggedLine(msgspec.Struct, frozen=True):
    """A line of a log file."""

    at: str
    """When the supervisor read it, in UTC."""
    worker: str
    generation: int
    stream: str
    """`out`, `err`, or `log` for a notice of the supervisor."""
    text: str

    @property
    def at_wall_ms(self) -> int:
        """The same in milliseconds since 1970."""
        return wall_ms_of(self.at)


_TEXT = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) (\S+) (\d+) (\w+) \| (.*)", re.DOTALL)
_decoded = msgspec.json.Decoder(LoggedLine).decode


def stamp(wall_ms: int) -> str:
    """A time as it stands in a file; earlier times sort before later ones."""
    seconds, ms = divmod(wall_ms, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{ms:03}Z"


def wall_ms_of(at: str) -> int:
    """The time of a stamp."""
    return round(datetime.fromisoformat(at).timestamp() * 1000)


def written(format_: LogFormat, worker: str, generation: int, stream: str, at: str, data: bytes) -> bytes:
    """Some whole lines of one stream as they stand in a file; the data ends with a line end."""
    if format_ is LogFormat.JSON:
        return _as_json(worker, generation, stream, at, data)
    begin = f"{at} {worker} {generation} {stream} | ".encode()
    # One call for all lines: a program may write a million of them in a second.
    return begin + data[:-1].replace(b"\n", b"\n" + begin) + b"\n"


def _as_json(worker: str, generation: int, stream: str, at: str, data: bytes) -> bytes:
    known = {"at": at, "worker": worker, "generation": generation, "stream": stream}
    begin = msgspec.json.encode(known)[:-1] + b',"text":'
    encode = msgspec.json.Encoder().encode
    texts = data[:-1].decode("utf-8", "backslashreplace").split("\n")
    return b"".join([begin + encode(text) + b"}\n" for text in texts])


def read(line: bytes) -> LoggedLine | None:
    """A line of a file, without its line end; None if it is not one of ours."""
    if line.startswith(b"{"):
        try:
            return _decoded(line)
        except msgspec.MsgspecError:
            return None
    found = _TEXT.fullmatch(line)
    if found is None:
        return None
    at, worker, generation, stream, text = found.groups()
    return LoggedLine(
        at.decode(),
        worker.decode("utf-8", "backslashreplace"),
        int(generation),
        stream.decode("utf-8", "backslashreplace"),
        text.decode("utf-8", "backslashreplace"),
    )


_STAMP = re.compile(rb'(?:\{"at":")?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)')


def stamp_of(line: bytes) -> str | None:
    """Only the time of a line, which is quick to read."""
    found = _STAMP.match(line)
    return None if found is None else found[1].decode()
