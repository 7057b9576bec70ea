"""Pure: the runs of scheduled workers as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .text import age, countdown, exit_words, moment, printable, span

Document = Mapping[str, Any]

COLOURS = {
    "succeeded": "32",
    "running": "36",
    "waiting": "36",
    "failed": "31",
    "lost": "31",
    "stopped": "33",
    "skipped": "33",
    "missed": "33",
}

_REASONS = {
    "supervisor_down": "the supervisor was not running",
    "supervisor_lost": "the supervisor ended without notice",
    "shutdown": "the supervisor was shut down",
    "overlap": "another run was still running",
    "replaced": "the next run replaced it",
    "paused": "the worker was paused",
    "stopped": "the worker was stopped",
    "group_given_up": "its group was given up",
    "late": "the supervisor was suspended, or its clock was set",
    "timeout": "it took too long",
    "configuration_change": "its configuration changed",
}

RUN_HEADING = ("RUN", "STATE", "DUE", "TRIGGER", "STARTED", "TOOK", "TRIES", "WHY")


def run_cells(run: Document, now_ms: int) -> tuple[str, ...]:
    """The cells of one run."""
    started, ended = run["started_at_wall_ms"], run["ended_at_wall_ms"]
    took = None if started is None else (now_ms if ended is None else ended) - started
    return (
        str(run["number"]),
        run["state"],
        due_words(run),
        run["trigger"].replace("_", " "),
        "-" if started is None else f"{age(now_ms - started)}",
        "-" if took is None else span(max(0, took)),
        str(run["attempts"]) if run["attempts"] else "-",
        why_words(run),
    )


def due_words(run: Document) -> str:
    """When the run was due; if the row stands for several, from when to when."""
    first = moment(run["due_wall_ms"])
    if run["times"] == 1:
        return first
    last = run["last_due_wall_ms"]
    return f"{run['times']} from {first}" + ("" if last is None else f" to {moment(last)}")


def why_words(run: Document) -> str:
    """Why it was not executed, or how it ended."""
    if run["detail"]:
        return printable(run["detail"])
    if run["reason"]:
        return _REASONS.get(run["reason"], str(run["reason"]))
    if run["exit_code"] is not None or run["signal"] is not None:
        return exit_words(run["exit_code"], run["signal"])
    return ""


def run_outlook(schedule: Document) -> str:
    """When the next run of a worker that rests is due, and how the last one ended."""
    text = f"next run in {countdown(schedule['next_in_ms'])}"
    current, last = schedule["current"], schedule["last"]
    if current is not None and current["state"] == "waiting":
        text = f"run {current['number']} starts soon; {text}"
    if schedule["overdue"]:
        text += "; has not succeeded for two periods"
    if last is not None and last["state"] != "succeeded":
        text += f"; the last one: {last['state']}"
        if why := why_words(last):
            text += f" ({why})"
    return text


def run_rows(runs: Sequence[Document], now_ms: int) -> tuple[list[tuple[str, ...]], list[str]]:
    """The cells and the colours of the states."""
    return [run_cells(run, now_ms) for run in runs], [COLOURS.get(run["state"], "0") for run in runs]
