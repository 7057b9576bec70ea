"""Pure: all figures of the queues as one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .backlog import Backlog
from .latency import Latency, together
from .libraries.race import Result

Side = tuple[str, str]
"""A database and a library."""

_HEAD = """\
| on | library | jobs a second | ratio | enqueue to start, ms: median (p99) | ratio |
|---|---|---|---|---|---|"""


def table(rates: Mapping[Side, Sequence[Result]], latencies: Mapping[Side, Sequence[Latency]]) -> str:
    """A row for each library; the ratios are to Rekindle on the same database, or on SQLite."""
    sides = list(dict.fromkeys([*rates, *latencies]))
    best = {side: max(result.rate for result in results) for side, results in rates.items()}
    waits = {side: together(each) for side, each in latencies.items()}
    return "\n".join([_HEAD, *(_row(side, rates, best, waits) for side in sides)])


def _row(
    side: Side,
    rates: Mapping[Side, Sequence[Result]],
    best: Mapping[Side, float],
    waits: Mapping[Side, Latency],
) -> str:
    database, library = side
    ours = next((s for s in ((database, "Rekindle"), ("SQLite", "Rekindle")) if s in {**best, **waits}), side)
    cells = [database, library, "", "", "", ""]
    if side in best:
        every = ", ".join(f"{result.rate:,.0f}" for result in rates[side])
        cells[2] = f"{best[side]:,.0f} ({every}){_losses(rates[side])}"
        cells[3] = f"{best[side] / best[ours]:.2f}" if ours in best else ""
    if side in waits:
        cells[4] = f"{waits[side].p50_ms:.2f} ({waits[side].p99_ms:.1f})"
        cells[5] = f"{waits[side].p50_ms / waits[ours].p50_ms:.2f}" if ours in waits else ""
    return f"| {' | '.join(cells)} |"


def _losses(results: Sequence[Result]) -> str:
    lost, repeated = sum(each.lost for each in results), sum(each.repeated for each in results)
    return f"; {lost} lost, {repeated} repeated" if lost or repeated else ""


def backlog_table(backlogs: Mapping[str, Sequence[Backlog]]) -> str:
    """A row for each database and kind of backlog; the ratios are to a queue with one job."""
    head = "| on | a claim and its result beside | ms | ratio |\n|---|---|---|---|"
    rows = [
        f"| {database} | {each.jobs:,} jobs, {each.kind} | {each.median_ms:.2f} | {each.ratio:.2f} |"
        for database, found in backlogs.items()
        for each in found
    ]
    return "\n".join([head, *rows])
