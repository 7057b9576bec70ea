"""Pure: a status report as a table for a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rekindle.actors import StatusReport, WorkerStatus

COLOURS = {
    "healthy": "32",
    "starting": "36",
    "crashed": "33",
    "failed": "31",
    "stopping": "35",
    "stopped": "2",
}

HEADINGS = ("WORKER", "STATUS", "PID", "UPTIME", "JOB", "RESTARTS", "NEXT", "WHY")


def table(report: StatusReport, *, colour: bool, width: int = 120) -> list[str]:
    """The lines of a table of all workers."""
    rows = [_cells(worker) for worker in report.workers]
    widths = [max(len(row[i]) for row in (HEADINGS, *rows)) for i in range(len(HEADINGS))]
    lines = [_line(HEADINGS, widths)[:width].rstrip()]
    for worker, row in zip(report.workers, rows, strict=True):
        line = _line(row, widths)[:width].rstrip()
        if colour:
            shown = f"\x1b[{COLOURS[worker.shown]}m{row[1]}\x1b[0m"
            line = line.replace(f" {row[1]}", f" {shown}", 1)
        lines.append(line)
    if report.degraded is not None:
        lines.append(f"not saved yet: {report.unsaved} records ({printable(report.degraded)})")
    return lines


def _line(cells: Iterable[str], widths: list[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))


def _cells(worker: WorkerStatus) -> tuple[str, ...]:
    return (
        worker.component_id,
        worker.shown,
        "-" if worker.pid is None else str(worker.pid),
        "-" if worker.uptime_s is None else span(worker.uptime_s),
        "-" if worker.current_job is None else printable(str(worker.current_job)),
        str(worker.restart_count),
        "-" if worker.next_attempt_in_s is None else f"in {span(worker.next_attempt_in_s)}",
        _flag(worker) or printable(worker.why),
    )


def _flag(worker: WorkerStatus) -> str:
    """What to know of a worker that counts as healthy and is not quite."""
    exact = None if worker.status is None else worker.status.value
    return exact if worker.shown == "healthy" and exact is not None and exact != "healthy" else ""


def span(seconds: float) -> str:
    """A duration as people say it."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds // 60:.0f} min"
    return f"{seconds // 3600:.0f} h {seconds % 3600 // 60:.0f} min"


def printable(text: str) -> str:
    """Text from a worker, with nothing in it that could steer a terminal."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
