"""Measures the queues of all libraries by turns, prints one table with ratios, and writes JSON on request.

Without a choice: jobs a second, the time from enqueue to start, and claims beside a million jobs.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

from .backlog import Backlog, measure_backlog
from .fairness import run_fairness
from .latency import Latency, measure_latency
from .libraries.huey_side import run_huey
from .libraries.ours import run_rekindle
from .libraries.procrastinate_side import run_procrastinate
from .libraries.race import Result
from .libraries.redis_side import redis_server, run_dramatiq, run_rq
from .places import new_folder, postgresql
from .table import Side, backlog_table, table

FEWER_ON_REDIS = 5
"""RQ forks a process for each job: as many jobs as for the others would take minutes."""

MILLION = 1_000_000

Figures = TypeVar("Figures", Result, Latency)


def main() -> None:
    """Run the benchmark."""
    options = _arguments()
    if options.fair:
        _account(options.fair)
        return
    everything = not (options.rates or options.latency or options.backlog)
    rates: dict[Side, list[Result]] = {}
    latencies: dict[Side, list[Latency]] = {}
    for _ in range(options.rounds):
        if options.rates or everything:
            _add(rates, _rates(options.jobs, options.workers))
        if options.latency or everything:
            _add(latencies, _latencies())
    backlogs = _backlogs(options.backlog or MILLION) if options.backlog or everything else {}
    if rates or latencies:
        print(f"\n{table(rates, latencies)}")
    if backlogs:
        print(f"\n{backlog_table(backlogs)}")
    if options.json:
        options.json.write_text(json.dumps(_document(rates, latencies, backlogs), indent=2) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench/run-jobs", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to a file as well")
    parser.add_argument("--jobs", type=int, default=5000, help="how many jobs each library runs in a round")
    parser.add_argument("--workers", type=int, default=4, help="how many worker processes each library has")
    parser.add_argument("--rounds", type=int, default=3, help="how often each library runs, by turns")
    parser.add_argument("--rates", action="store_true", help="measure only jobs a second")
    parser.add_argument("--latency", action="store_true", help="measure only enqueue to start")
    parser.add_argument("--backlog", type=int, metavar="N", help="measure only claims beside N jobs")
    parser.add_argument("--fair", type=int, metavar="N", help="account for N jobs under random kills instead")
    return parser.parse_args()


def _add(known: dict[Side, list[Figures]], found: Iterator[tuple[str, Figures]]) -> None:
    for database, figures in found:
        print(f"{database:<12}{figures}", flush=True)
        known.setdefault((database, figures.name), []).append(figures)


def _rates(jobs: int, workers: int) -> Iterator[tuple[str, Result]]:
    """Every library once; the queue is full before the workers start."""
    with new_folder() as folder:
        yield "SQLite", run_rekindle(str(folder / "rekindle.db"), jobs, workers)
        yield "SQLite", run_huey(folder, jobs, workers)
    with new_folder() as folder, postgresql(folder) as (ours, theirs):
        yield "PostgreSQL", run_rekindle(ours, jobs, workers)
        yield "PostgreSQL", run_procrastinate(theirs, jobs, workers)
    with new_folder() as folder:
        yield "Redis", run_rq(folder, jobs // FEWER_ON_REDIS, workers)
    with new_folder() as folder:
        yield "Redis", run_dramatiq(folder, jobs // FEWER_ON_REDIS, workers)


def _latencies() -> Iterator[tuple[str, Latency]]:
    """Every library once, with one worker that has nothing else to do."""
    with new_folder() as folder:
        yield "SQLite", measure_latency("Rekindle", str(folder / "rekindle.db"), folder)
        yield "SQLite", measure_latency("Huey", str(folder / "huey.db"), folder)
    with new_folder() as folder, postgresql(folder) as (ours, theirs):
        yield "PostgreSQL", measure_latency("Rekindle", ours, folder)
        yield "PostgreSQL", measure_latency("Procrastinate", theirs, folder)
    with new_folder() as folder, redis_server(folder) as address:
        yield "Redis", measure_latency("RQ", address, folder)
        yield "Redis", measure_latency("Dramatiq", address, folder)


def _backlogs(jobs: int) -> dict[str, list[Backlog]]:
    with new_folder() as folder:
        found = {"SQLite": measure_backlog(str(folder / "rekindle.db"), jobs)}
    with new_folder() as folder, postgresql(folder) as (ours, _):
        return found | {"PostgreSQL": measure_backlog(ours, jobs)}


def _account(jobs: int) -> None:
    """Account for jobs under random kills, on both databases."""
    with new_folder() as folder:
        _judge("SQLite", str(folder / "rekindle.db"), folder, jobs)
    with new_folder() as folder, postgresql(folder) as (ours, _):
        _judge("PostgreSQL", ours, folder, jobs)


def _judge(database: str, where: str, folder: Path, jobs: int) -> None:
    account = run_fairness(where, folder, jobs, seed=1)
    print(database, account, flush=True)
    if not account.is_fair:
        raise SystemExit(1)


def _document(
    rates: dict[Side, list[Result]], latencies: dict[Side, list[Latency]], backlogs: dict[str, list[Backlog]]
) -> object:
    return {
        "rates": {" ".join(side): [asdict(each) for each in found] for side, found in rates.items()},
        "latencies": {" ".join(side): [asdict(each) for each in found] for side, found in latencies.items()},
        "backlogs": {database: [asdict(each) for each in found] for database, found in backlogs.items()},
    }


if __name__ == "__main__":
    main()
