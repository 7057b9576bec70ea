"""Pure: spans, moments, exits and foreign text as people read them. The standard library only."""

from __future__ import annotations

import math
import re
import unicodedata

from rekindle.worker.plain_text import counted as counted
from rekindle.worker.plain_text import printable as printable
from rekindle.worker.plain_text import printable_lines as printable_lines
from rekindle.worker.plain_text import progress_words as progress_words
from rekindle.worker.plain_text import span as span

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)([smhd]?)")
_CUT = "\N{HORIZONTAL ELLIPSIS}"


def cells(text: str) -> int:
    """How many terminal columns a text needs."""
    if text.isascii():
        return len(text)
    return sum(_cells(char) for char in text)


def cut(text: str, width: int) -> str:
    """As much of the text as fits, with an ellipsis if it was cut."""
    if cells(text) <= width:
        return text
    kept, left = "", width - 1
    for char in text:
        left -= _cells(char)
        if left < 0:
            break
        kept += char
    return (kept + _CUT) if width > 0 else ""


def padded(text: str, width: int) -> str:
    """The text, padded with blanks to a width."""
    return text + " " * (width - cells(text))


def seconds_of(text: str) -> float:
    """The seconds that `90`, `90s`, `30m`, `2h`, `1d` or `1h30m` stand for.

    Raises:
        ValueError: the text is none of these, or not longer than 0.
    """
    wanted = text.strip().lower()
    parts = _PART.findall(wanted)
    units = [unit for _, unit in parts]
    if not parts or "".join(number + unit for number, unit in parts) != wanted or "" in units[:-1]:
        raise ValueError(f"{printable(text)!r} is not a duration; write 90, 90s, 30m, 2h or 1d")
    if len(parts) > 1 and "" in units:
        raise ValueError(f"{printable(text)!r} ends without a unit; write 1h30m")
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if not 0 < seconds < math.inf:
        raise ValueError(f"{printable(text)!r} must be finite and longer than 0")
    return seconds


def countdown(milliseconds: float) -> str:
    """How long until something, in whole units: what ticks shall not flicker."""
    seconds = math.ceil(max(0.0, milliseconds) / 1000)
    return f"{seconds} s" if seconds < 60 else span(seconds * 1000)


def age(milliseconds: float) -> str:
    """How long ago something was."""
    if milliseconds < 0:
        return f"in {span(-milliseconds)}"
    return "just now" if milliseconds < 1000 else f"{countdown(milliseconds - 999)} ago"


def moment(wall_ms: int) -> str:
    """A wall-clock moment in ISO 8601, in local time."""
    from datetime import UTC, datetime

    try:
        return datetime.fromtimestamp(wall_ms / 1000, UTC).astimezone().isoformat(timespec="seconds")
    except (OverflowError, OSError, ValueError):  # outside the calendar
        return f"{wall_ms} ms"


def since(wall_ms: int, now_ms: int) -> str:
    """When something began: a time today, a day of this week, or a date."""
    from datetime import UTC, datetime

    try:
        began = datetime.fromtimestamp(wall_ms / 1000, UTC).astimezone()
        now = datetime.fromtimestamp(now_ms / 1000, UTC).astimezone()
    except (OverflowError, OSError, ValueError):  # outside the calendar
        return f"{wall_ms} ms"
    days = (now.date() - began.date()).days
    if days == 0:
        return f"{began:%H:%M}"
    return f"{began:%A}" if 0 < days < 7 else f"{began:%Y-%m-%d}"


def signal_name(number: int) -> str:
    """SIGKILL for 9; the number if it has no name."""
    import signal

    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def exit_words(code: int | None, signal: int | None) -> str:
    """How a process ended."""
    if signal is not None:
        return f"killed by {signal_name(signal)}"
    return "exit status unknown" if code is None else f"exited with code {code}"


def _cells(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
