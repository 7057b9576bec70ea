"""Pure: what the view shows, computed from the server's JSON and its age."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..render.status_table import Document, breaker_line, outlook, restarts, summary
from ..render.text import cut, printable, span

COLUMNS = ("WORKER", "STATUS", "PID", "UPTIME", "RESTARTS", "NEXT")

STYLES = {
    "healthy": "green",
    "starting": "cyan",
    "crashed": "yellow",
    "failed": "bold red",
    "stopping": "magenta",
    "stopped": "dim",
    "done": "green",
    "scheduled": "cyan",
}
SEVERITIES = {"critical": "bold red", "warning": "yellow", "info": "cyan"}

PADDING = 2
"""The padding of every cell."""

LEAST_NEXT = 12
"""The minimum width of the last column."""

BAR = 6
"""The width of the gauge of restarts."""


@dataclass(frozen=True, slots=True)
class Board:
    """The state of a supervisor, and when it was received."""

    workers: tuple[Document, ...] = ()
    alerts: tuple[Document, ...] = ()
    at: float = 0.0
    paused: bool = False
    trouble: str = ""
    """Why there is no newer state; empty while the supervisor answers."""
    breakers: tuple[Document, ...] = ()
    """The open breakers."""

    def row(self, component_id: str) -> Document | None:
        """One worker in its latest known state."""
        return next((each for each in self.workers if each["component_id"] == component_id), None)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    component_id: str
    cells: tuple[str, ...]
    style: str


def rows(board: Board, filter_: str, now: float, width: int | None = None) -> list[Row]:
    """The workers whose id or status contains the filter, failed and crashed ones first.

    With a width, the last column is cut to fit.
    """
    passed_ms = max(0, round((now - board.at) * 1000)) if not board.trouble else 0
    found = [_aged(worker, passed_ms) for worker in board.workers if _matches(worker, filter_)]
    listed = [_row(worker) for worker in sorted(found, key=_urgency)]
    return listed if width is None else _fitted(listed, width)


def _fitted(listed: list[Row], width: int) -> list[Row]:
    """The rows with the last column cut to the width of the terminal."""
    widest = [max(map(len, column)) for column in zip(COLUMNS, *(row.cells for row in listed), strict=True)]
    left = max(LEAST_NEXT, width - sum(widest[:-1]) - PADDING * len(COLUMNS))
    return [replace(row, cells=(*row.cells[:-1], cut(row.cells[-1], left))) for row in listed]


def _matches(worker: Document, filter_: str) -> bool:
    return filter_.lower() in f"{worker['component_id']} {worker['shown']}".lower()


_ORDER = {"failed": 0, "crashed": 1, "stopping": 2, "starting": 2}


def _urgency(worker: Document) -> tuple[int, str]:
    return _ORDER.get(worker["shown"], 3), ""


def _aged(worker: Document, passed_ms: int) -> dict[str, Any]:
    """The worker with its clocks advanced to now."""
    aged = dict(worker)
    if worker["uptime_ms"] is not None and worker["pid"] is not None:
        aged["uptime_ms"] = worker["uptime_ms"] + passed_ms
    for clock in ("next_attempt_in_ms", "pause_ends_in_ms"):
        if worker[clock] is not None:
            aged[clock] = max(0, worker[clock] - passed_ms)
    return aged


def _row(worker: Document) -> Row:
    pid, uptime = worker["pid"], worker["uptime_ms"]
    cells = (
        printable(worker["component_id"]),
        worker["shown"],
        "-" if pid is None else str(pid),
        "-" if uptime is None else span(uptime // 1000 * 1000),
        gauge(worker),
        outlook(worker),
    )
    return Row(worker["component_id"], cells, STYLES.get(worker["shown"], ""))


def gauge(worker: Document) -> str:
    """How much of the nearest restart limit is used: `▰▰▱▱▱ 2/5`."""
    text = restarts(worker)
    used, slash, most = text.partition("/")
    if not slash:
        return text
    cells = min(BAR, int(most))  # a small limit has a cell for each restart
    filled = min(cells, round(cells * int(used) / int(most)))
    return "▰" * filled + "▱" * (cells - filled) + " " + text


def heading(board: Board) -> str:
    """The first line: a summary of all workers."""
    if board.trouble:
        return f"not connected: {printable(board.trouble)}"
    parts = [summary(board.workers)]
    if board.paused:
        parts.append("the system is paused")
    return ", ".join(parts)


def breaker_lines(board: Board, now: float) -> list[str]:
    """A line for every open breaker, with its clocks advanced to now."""
    passed_ms = 0 if board.trouble else max(0, round((now - board.at) * 1000))
    return [breaker_line(_open_now(breaker, passed_ms)) for breaker in board.breakers]


def _open_now(breaker: Document, passed_ms: int) -> Document:
    left = breaker["next_try_in_ms"]
    return {
        **breaker,
        "open_for_ms": breaker["open_for_ms"] + passed_ms,
        "next_try_in_ms": None if left is None else max(0, left - passed_ms),
    }


def badge(alerts: Sequence[Document]) -> str:
    """The number of open alerts that are not acknowledged; empty if there are none."""
    count = sum(_is_unacknowledged(alert) for alert in alerts)
    return f" {count} alert{'' if count == 1 else 's'} " if count else ""


def _is_unacknowledged(alert: Document) -> bool:
    return alert["resolved_at_wall_ms"] is None and alert["acknowledged_at_wall_ms"] is None


def alert_rows(alerts: Sequence[Document]) -> list[tuple[int, tuple[str, ...], str]]:
    """The open alerts: number, cells, style."""
    return [
        (alert["id"], _alert_cells(alert), SEVERITIES.get(alert["severity"], ""))
        for alert in alerts
        if alert["resolved_at_wall_ms"] is None
    ]


def _alert_cells(alert: Document) -> tuple[str, ...]:
    is_acknowledged = alert["acknowledged_at_wall_ms"] is not None
    return (
        str(alert["id"]),
        alert["severity"],
        printable(alert["component_id"] or "system"),
        str(alert["occurrences"]),
        cut(printable(alert["message"]), 120),
        printable(alert["acknowledged_by"] or "yes") if is_acknowledged else "",
    )


def has_new_critical(before: Sequence[Document], after: Sequence[Document]) -> bool:
    """Whether there is a new or repeated critical alert that is not acknowledged."""
    known = {alert["id"]: (alert["occurrences"], alert["escalated"]) for alert in before}
    return any(
        alert["severity"] == "critical"
        and _is_unacknowledged(alert)
        and known.get(alert["id"]) != (alert["occurrences"], alert["escalated"])
        for alert in after
    )
