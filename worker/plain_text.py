"""Pure: numbers, durations and untrusted text in a form for people.

It is here because supervisor, command line and store may all import this package.
"""

from __future__ import annotations


class _Escapes(dict[int, str]):
    """The replacement of each code point for `printable`, computed on first use."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        shown = char if char.isprintable() else char.encode("unicode_escape").decode()
        self[code] = shown
        return shown


_ESCAPES = _Escapes({ord("\t"): " "})


def printable(text: str) -> str:
    """Untrusted text as one line that cannot control a terminal: `\\x1b` stands for an escape."""
    return text if text.isprintable() else text.translate(_ESCAPES)


def printable_lines(text: str) -> str:
    """The same for several lines; newlines stay."""
    return "\n".join(printable(line.rstrip("\r")) for line in text.split("\n"))


def span(milliseconds: float) -> str:
    """A duration in at most two units: `300 ms`, `1.5 s`, `1 min 30 s`, `2 h`, `3 d 4 h`.

    `words.js` formats the same way; one table of cases tests both.
    """
    seconds = max(0.0, milliseconds / 1000)
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms" if seconds else "0 s"
    if seconds < 9.95:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    whole = max(60, int(seconds))
    if whole < 3600:
        return _two_units(whole, 60, "min", 1, "s")
    if whole < 86_400:
        return _two_units(whole, 3600, "h", 60, "min")
    return _two_units(whole, 86_400, "d", 3600, "h")


def _two_units(seconds: int, large: int, large_name: str, small: int, small_name: str) -> str:
    rest = seconds % large // small
    return f"{seconds // large} {large_name}" + (f" {rest} {small_name}" if rest else "")


def counted(number: int, one: str, many: str) -> str:
    """`1 worker`, `2 workers`."""
    return f"{number} {one if number == 1 else many}"


def progress_words(done: float | None, total: float | None, note: str) -> str:
    """How far a job is: `30 of 100 (30%) file 29`."""
    parts = [] if done is None else [_short(done)]
    parts += [] if total is None else [f"of {_short(total)}"]
    parts += [f"({done / total:.0%})"] if done is not None and total else []
    return " ".join([*parts, note]).rstrip()


def _short(number: float) -> str:
    return f"{int(number)}" if number == int(number) else f"{number:g}"
