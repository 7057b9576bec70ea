"""The payloads that `rekindle jobs enqueue` is given: one as an argument, or one a line of a file."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import IO, Any

from ...console.exits import BAD_USAGE, say


def payloads(payload: str | None, file: IO[bytes] | None) -> Iterator[Any]:
    """The JSON values; exits with the line number of the first line that is not JSON."""
    import json

    lines = [payload.encode("utf-8", "surrogateescape")] if payload is not None else file or ()
    for number, line in enumerate(lines, 1):
        if payload is None and not line.strip():
            continue
        try:
            yield json.loads(line, parse_constant=_no_number, parse_float=_finite)
        except (ValueError, RecursionError) as error:
            where = "the payload" if payload is not None else f"line {number} of {_name(file)}"
            say(f"{where} is not JSON: {error}; nothing was enqueued")
            raise SystemExit(BAD_USAGE) from None


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is not a JSON number")


def _finite(word: str) -> float:
    number = float(word)
    return number if math.isfinite(number) else _no_number(word)


def _name(file: IO[bytes] | None) -> str:
    return "standard input" if file is sys.stdin.buffer else str(getattr(file, "name", "the file"))
