"""Pure: what the view shows, computed from the server's JSON and its age."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..render.status_table import Document, breaker_line, summary
from ..render.text import cut, printable

SEVERITIES = {"critical": "bold red", "warning": "yellow", "info": "cyan"}


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
    rollouts: tuple[Document, ...] = ()
    """Those under way."""
    usages: Mapping[str, Document] = field(default_factory=dict)
    """What each worker used when it was last measured."""

    def row(self, component_id: str) -> Document | None:
        """One worker in its latest known state."""
        return next((each for each in self.workers if each["component_id"] == component_id), None)


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


def rollout_lines(board: Board) -> list[str]:
    """A line for every rollout under way: how far it is, and its latest step."""
    return [_rollout(each) for each in board.rollouts]


def _rollout(rollout: Document) -> str:
    done, wanted = len(rollout["replaced"]), len(rollout["workers"])
    step = rollout["problem"] or (rollout["steps"][-1] if rollout["steps"] else "")
    line = f"Rollout of {rollout['group']}: {done} of {wanted} replaced"
    return printable(f"{line}: {step}" if step else line)


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
