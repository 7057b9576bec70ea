"""Pure: the lines of a dead program's output that say why it ended.

Frames, quoted code and footers of Python, Node, Java, Go and Rust are left out. A program wrote the
lines, so they are a hint and not evidence: only an exit with an error makes them worth showing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .evidence import Line

LONGEST = 200
MOST_LINES = 3

_COLOUR = re.compile(r"\\x1b\[[0-9;]*[A-Za-z]")
"""Escape sequences, as the tail of the output shows them."""

_FILLER = re.compile(
    r"\s|[\W_]*$"  # frames and code are indented; marks below code have no letters
    r"|Traceback \(most recent call last\):|During handling of the above|The above exception was"
    r"|Node\.js v\d|npm (ERR!|error) (A complete log|\s*$)|sys:\d+: \w*Warning"
    r"|note: run with|stack backtrace:|exit status \d+$"
)
_PANIC = re.compile(r"panic: |fatal error: |thread '.*' panicked at ")
"""What follows these lines are stacks that are not indented."""

_COMPLAINT = re.compile(
    r"error|fatal|exception|panic|fail|cannot|can't|could not|denied|refused|not found|no such|invalid",
    re.IGNORECASE,
)


def last_lines(output: Sequence[Line]) -> tuple[str, ...]:
    """The last lines that say something, at most three; those of stderr, if it has any.

    A line of stdout counts only if the last one reads like a complaint.
    """
    errors = _telling([text for stream, text in output if stream == "err"])
    if errors:
        return errors
    printed = _telling([text for stream, text in output if stream != "err"])
    return printed if printed and _COMPLAINT.search(printed[-1]) else ()


def last_error(output: Sequence[Line]) -> str:
    """The one line that tells most; empty if there is none."""
    lines = last_lines(output)
    if not lines:
        return ""
    if _PANIC.match(lines[0]):
        joined = " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]
        return joined[:LONGEST]
    return lines[-1][:LONGEST]


def _telling(texts: Sequence[str]) -> tuple[str, ...]:
    plain = [_COLOUR.sub("", text).rstrip() for text in texts]
    spoken = [text for text in plain if text and not _FILLER.match(text)]
    if not spoken:
        spoken = [text.strip() for text in plain if text.strip()][-1:]
    panic = next((number for number, text in enumerate(spoken) if _PANIC.match(text)), None)
    chosen = spoken[-MOST_LINES:] if panic is None else spoken[panic : panic + MOST_LINES]
    return tuple(text[:LONGEST] for text in chosen)
