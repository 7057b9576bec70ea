"""Pure: the lines of a log file; `rekindle.cli.console.logs` reads them back.

    2026-11-18T09:51:34.123Z worker:web:0 3 out | listening on port 8000
    {"at":"2026-11-18T09:51:34.123Z","worker":"worker:web:0","generation":3,"stream":"out","text":"listening"}

What a worker wrote stands in a text file as it was written, except that each line has a beginning of ours.
"""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from ...spec.policies.log_policy import LogFormat

NOTICE = "log"
"""The stream of a line that the supervisor wrote itself."""


def stamp(wall_ms: int) -> str:
    """A time as it stands in a file; earlier times sort before later ones."""
    seconds, ms = divmod(wall_ms, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{ms:03}Z"


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
