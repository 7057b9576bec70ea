"""Pure: numbers in sentences."""

from __future__ import annotations


def ordinal(number: int) -> str:
    """`1st`, `2nd`, `11th`."""
    ending = "th" if number // 10 % 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def progress_words(done: float | None, total: float | None, note: str) -> str:
    """How far a job is: `30 of 100 (30%) file 29`."""
    parts = [] if done is None else [_short(done)]
    parts += [] if total is None else [f"of {_short(total)}"]
    parts += [f"({done / total:.0%})"] if done is not None and total else []
    return " ".join([*parts, note]).rstrip()


def _short(number: float) -> str:
    return f"{int(number)}" if number == int(number) else f"{number:g}"


def counted(number: int, one: str, many: str) -> str:
    """`1 worker`, `2 workers`."""
    return f"{number} {one if number == 1 else many}"
