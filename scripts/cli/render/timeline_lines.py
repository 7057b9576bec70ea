"""Pure: a worker's timeline as lines of text, from the server's JSON."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from .status_table import Document
from .text import printable, span

GAP_MS = 10 * 60 * 1000
"""A longer time without entries is marked with a line."""

_SYMBOLS = {
    "start": "▶",
    "health": "●",
    "lost": "○",
    "death": "✖",
    "decision": "↻",
    "failed": "■",
    "stop": "□",
    "signal": "→",
    "pause": "‖",
    "recycle": "♻",
    "job": "◆",
    "resource": "▲",
    "sample": "·",
    "alert": "!",
    "gap": "⋮",
}
_MARGIN = " " * 14


def timeline_lines(document: Document, *, newest_first: bool = False) -> Iterator[str]:
    """One line per entry, a heading per day, and a mark for each long gap."""
    entries = document["entries"] if newest_first else document["entries"][::-1]
    nodes = {str(entry.get("node") or "") for entry in entries}
    if document["more"] and not newest_first:
        yield f"{_MARGIN}⋮ older entries are not shown (--limit)"
    yield from _lines(entries, max(map(len, nodes), default=0))
    if document["more"] and newest_first:
        yield f"{_MARGIN}⋮"


def _lines(entries: Iterable[Document], node_width: int) -> Iterator[str]:
    day, before = "", None
    for entry in entries:
        at = entry["at_wall_ms"]
        if before is not None and abs(at - before) >= GAP_MS:
            yield f"{_MARGIN}⋮ nothing for {span(abs(at - before))}"
        today, moment = _moment(at)
        if today != day:
            yield f"── {today} ──"
        node = f"{printable(entry.get('node') or ''):{node_width}}  " if node_width else ""
        yield f"{moment}  {node}{_SYMBOLS.get(entry['kind'], '-')} {printable(entry['text'])}"
        day, before = today, at


def failure_line(document: Document) -> str:
    """`Mean time between failures: 2 min over the 5 deaths shown, 3 h over all 11.`."""
    ever, shown = document["ever"], document["shown"]
    if not ever["deaths"]:
        return "It has not died."
    mean = f"{span(ever['mean_between_ms'])} over all {ever['deaths']} deaths."
    if shown["deaths"] and shown["deaths"] != ever["deaths"]:
        word = "death" if shown["deaths"] == 1 else "deaths"
        mean = f"{span(shown['mean_between_ms'])} over the {shown['deaths']} {word} shown, {mean}"
    elif ever["deaths"] == 1:
        mean = f"{span(ever['mean_between_ms'])}, over one death."
    return f"Mean time between failures: {mean}"


def _moment(wall_ms: int) -> tuple[str, str]:
    try:
        local = time.localtime(wall_ms / 1000)
    except (OverflowError, OSError, ValueError):  # outside the calendar
        return f"{wall_ms} ms", " " * 12
    return time.strftime("%Y-%m-%d", local), f"{time.strftime('%H:%M:%S', local)}.{wall_ms % 1000:03d}"
