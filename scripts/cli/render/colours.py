"""Pure: the colours in a line that a worker wrote."""

from __future__ import annotations

import re

RESET = "\x1b[0m"

_SGR = re.compile(r"\\x1b\[(?P<codes>[0-9;]*)m")
"""A sequence that selects a graphic rendition, as the supervisor escapes it."""

_COLOUR = re.compile(
    r"(?:0|1|2|3|4|22|23|24|[34][0-79]|9[0-7]|10[0-7]|[34]8;5;[0-9]{1,3}|[34]8;2(?:;[0-9]{1,3}){3})?"
)
"""Colours, bold, faint, italic, underlined, and back; not hidden or blinking."""


def coloured(line: str, *, keep: bool) -> str:
    """The line with its escaped colours as real ones, reset at its end; without them if not kept."""
    if "\\x1b[" not in line:
        return line
    if not keep:
        return _SGR.sub("", line)
    text = _SGR.sub(lambda found: f"\x1b[{found['codes']}m" if _allowed(found["codes"]) else "", line)
    return text + RESET if text != line else text


def _allowed(codes: str) -> bool:
    parts, rest = [], codes
    while rest:
        wide = re.match(r"[34]8;(?:5;[0-9]{1,3}|2(?:;[0-9]{1,3}){3})(?:;|$)", rest)
        part = wide[0].rstrip(";") if wide else rest.partition(";")[0]
        parts.append(part)
        rest = rest[len(part) + 1 :]
    return all(_COLOUR.fullmatch(part) for part in parts)
