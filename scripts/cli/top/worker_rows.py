"""Pure: the lines of the table of workers, those of one group together, trouble first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from ..render.status_table import Document, outlook, restarts
from ..render.text import cut, printable, span
from ..render.worker_order import TROUBLE, natural
from .board import Board

COLUMNS = ("WORKER", "STATUS", "PID", "UPTIME", "CPU", "MEMORY", "RESTARTS", "NEXT")

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

PADDING = 2
"""The padding of every cell."""

SCROLLBAR = 2

LEAST_NEXT = 12
"""The minimum width of the last column."""

LEAST_NAME = 16
"""A name is not cut to fewer characters."""

WIDE = 100
"""From this width on there are all columns, and a gauge may have as many cells as the budget has restarts."""

LEFT_OUT = ("PID",)
"""Not shown on a narrower terminal, which has 80 columns."""

MOST_CELLS = 20
FEW_CELLS = 6
"""On a narrower terminal a larger budget is a number only."""

MOST_OPEN = 30
"""With more workers, a group without trouble is closed at first."""

UP = ("healthy", "done", "scheduled")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: a worker, or the head of a group."""

    component_id: str
    """The worker; the name of the group, if it is the head of one."""
    cells: tuple[str, ...]
    style: str
    members: tuple[str, ...] = ()
    """The workers of a group; empty for a worker."""

    @property
    def key(self) -> str:
        """Identifies the line: no worker's id begins like that of a group."""
        return f"\0{self.component_id}" if self.members else self.component_id


def columns(width: int | None) -> tuple[str, ...]:
    """The headings for a terminal of this width."""
    is_wide = width is None or width >= WIDE
    return COLUMNS if is_wide else tuple(name for name in COLUMNS if name not in LEFT_OUT)


def rows(
    board: Board,
    filter_: str,
    now: float,
    width: int | None = None,
    toggled: Mapping[str, bool] | None = None,
) -> list[Row]:
    """The workers whose id or status contains the filter, failed and crashed ones first.

    Args:
        board: what is known.
        filter_: without it, the workers of a group are below its head, unless it is closed.
        now: the clocks of the workers are advanced to it.
        width: of the terminal; the last column is cut to fit.
        toggled: the groups that the user opened (True) or closed.
    """
    passed_ms = max(0, round((now - board.at) * 1000)) if not board.trouble else 0
    found = [_aged(worker, passed_ms) for worker in board.workers if _matches(worker, filter_)]
    cells = MOST_CELLS if width is None or width >= WIDE else FEW_CELLS
    listed: list[Row] = []
    for name, workers in _grouped(found):
        lines = [_row(worker, board.usages.get(worker["component_id"]), cells) for worker in workers]
        if len(workers) > 1 and not filter_:
            default = len(found) <= MOST_OPEN or _urgency(workers[0]) < len(TROUBLE)
            is_open = (toggled or {}).get(name, default)
            lines = [_head(name, workers, is_open=is_open), *(map(_member, lines) if is_open else ())]
        listed += lines
    return listed if width is None else _fitted(listed, width)


def _grouped(workers: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """The groups, those with the worst trouble first, each with its workers in the same order."""
    by_name = sorted(enumerate(workers), key=lambda item: (group_of(item[1]["component_id"]), item[0]))
    groups = [
        (name, list(members))
        for name, members in groupby(by_name, key=lambda i: group_of(i[1]["component_id"]))
    ]
    groups.sort(key=lambda group: (min(_urgency(worker) for _, worker in group[1]), group[1][0][0]))
    return [(name, sorted((worker for _, worker in members), key=_order)) for name, members in groups]


def group_of(component_id: str) -> str:
    """`api` for `worker:api:3`; any other id stands for itself."""
    kind, _, rest = component_id.partition(":")
    name, _, number = rest.rpartition(":")
    return name if kind == "worker" and name and number.isdecimal() else component_id


def _urgency(worker: Document) -> int:
    return [*TROUBLE, worker["shown"]].index(worker["shown"])


def _order(worker: Document) -> tuple[object, ...]:
    return _urgency(worker), natural(worker["component_id"])


def _fitted(listed: list[Row], width: int) -> list[Row]:
    """The rows with long names and the last column cut to the width of the terminal."""
    shown = columns(width)
    kept = [_narrowed(row.cells, shown) for row in listed]
    widest = [max(map(len, column)) for column in zip(shown, *kept, strict=True)]
    room = width - sum(widest[1:-1]) - PADDING * len(shown) - SCROLLBAR
    name = min(widest[0], max(LEAST_NAME, room - LEAST_NEXT))
    left = max(LEAST_NEXT, room - name)
    fitted = [(_cut_inside(first, name), *others, cut(last, left)) for first, *others, last in kept]
    return [replace(row, cells=cells) for row, cells in zip(listed, fitted, strict=True)]


def _cut_inside(text: str, width: int) -> str:
    """A name with its end, where the number of the worker is: `worker:a-long…name:3`."""
    if len(text) <= width:
        return text
    end = width // 3
    return f"{text[: width - end - 1]}…{text[-end:]}"


def _narrowed(cells: tuple[str, ...], shown: tuple[str, ...]) -> tuple[str, ...]:
    """The cells of the columns that are shown; if some are not, the uptime has one unit."""
    if len(shown) == len(COLUMNS):
        return cells
    named: dict[str, str] = dict(zip(COLUMNS, cells, strict=True))
    named["UPTIME"] = " ".join(named["UPTIME"].split()[:2])
    return tuple(named[name] for name in shown)


def _matches(worker: Document, filter_: str) -> bool:
    return filter_.lower() in f"{worker['component_id']} {worker['shown']} {worker.get('node') or ''}".lower()


def _aged(worker: Document, passed_ms: int) -> dict[str, Any]:
    """The worker with its clocks advanced to now."""
    aged = dict(worker)
    if worker["uptime_ms"] is not None and worker["pid"] is not None:
        aged["uptime_ms"] = worker["uptime_ms"] + passed_ms
    for clock in ("next_attempt_in_ms", "pause_ends_in_ms"):
        if worker[clock] is not None:
            aged[clock] = max(0, worker[clock] - passed_ms)
    return aged


def _head(name: str, workers: list[dict[str, Any]], *, is_open: bool) -> Row:
    up = sum(worker["shown"] in UP for worker in workers)
    worst = workers[0]["shown"]
    troubles = [(word, sum(worker["shown"] == word for worker in workers)) for word in TROUBLE]
    note = ", ".join(f"{count} {word}" for word, count in troubles if count)
    cells = (f"{'▾' if is_open else '▸'} {printable(name)}", f"{up}/{len(workers)} up", *[""] * 5, note)
    members = tuple(worker["component_id"] for worker in workers)
    return Row(name, cells, STYLES.get(worst, "") if worst in TROUBLE else "", members)


def _place(worker: Document) -> str:
    """Its node, in a cluster."""
    node = worker.get("node")
    return f"on {printable(node)}" if node else ""


def _row(worker: Document, used: Document | None, most_cells: int) -> Row:
    pid, uptime = worker["pid"], worker["uptime_ms"]
    cells = (
        printable(worker["component_id"]),
        worker["shown"],
        "-" if pid is None else str(pid),
        "-" if uptime is None else span(uptime // 1000 * 1000),
        *_usage(used if pid is not None else None),
        gauge(worker, most_cells),
        "; ".join(
            filter(None, (_place(worker), outlook(worker).removeprefix("failed: ")))
        ),  # as its status says
    )
    return Row(worker["component_id"], cells, STYLES.get(worker["shown"], ""))


def _member(row: Row) -> Row:
    """A worker below the head of its group."""
    return replace(row, cells=(f"  {row.cells[0]}", *row.cells[1:]))


def _usage(used: Document | None) -> tuple[str, str]:
    if used is None:
        return "-", "-"
    cpu = used["cpu_percent"]
    return "-" if cpu is None else f"{cpu:.0f} %", f"{used['memory_mb']:.0f} MB"


def gauge(worker: Document, most_cells: int = MOST_CELLS) -> str:
    """The restarts of the nearest limit, a cell for each: `▰▰▱▱▱ 2/5`; a large limit is a number only."""
    text = restarts(worker)
    used, slash, most = text.partition("/")
    if not slash or int(most) > most_cells:
        return text
    filled = min(int(most), int(used))
    return "▰" * filled + "▱" * (int(most) - filled) + " " + text
