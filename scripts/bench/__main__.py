"""Measures the floor and Rekindle in one run, prints one table, and writes JSON where asked."""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from .events import lines, measure_events
from .floor import programs
from .measure import Summary
from .restarts import CROWD, MASS, RestartFigures, measure_restarts
from .storm import chaos_table, measure_chaos
from .supervisor import Cost, measure_costs, packages_pss_mb


def main() -> None:
    """Run the benchmark as the arguments say."""
    options = _arguments()
    with programs() as built:
        print(f"measuring restarts, the floor ({built.kind}) and Rekindle by turns ...", flush=True)
        restarts = measure_restarts(built, rounds=options.rounds, mass_rounds=options.mass_rounds)
        print("measuring what it costs to do nothing ...", flush=True)
        costs, packages = measure_costs(built, options.idle), packages_pss_mb()
        print("measuring the events ...", flush=True)
        events = measure_events(built, rounds=options.rounds)
    print("measuring chaos in virtual time ...", flush=True)
    chaos = measure_chaos()
    print(_table(restarts, costs))
    print(f"an interpreter with the packages loaded and a database open: {packages:.1f} MB PSS")
    print("\n".join(lines(events)))
    print(chaos_table(chaos))
    if options.json:
        document = {
            "machine": _machine(),
            "restarts": asdict(restarts),
            "costs": [asdict(cost) for cost in costs],
            "packages_pss_mb": packages,
            "events": asdict(events),
            "chaos": asdict(chaos),
        }
        options.json.write_text(json.dumps(document, indent=2) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench/run", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    parser.add_argument("--rounds", type=int, default=300, help="single kills for each number of workers")
    parser.add_argument(
        "--mass-rounds", type=int, default=20, help="how often all workers are killed at once"
    )
    parser.add_argument("--idle", type=float, default=10.0, help="seconds to watch it doing nothing")
    return parser.parse_args()


def _table(restarts: RestartFigures, costs: Sequence[Cost]) -> str:
    lines = [f"{'times in ms, median (p99)':<44}{'floor':>18}{'Rekindle':>18}{'ratio':>8}"]
    for pair in restarts.single:
        floor, rekindle = pair.floor, pair.rekindle
        lines.append(
            _line(f"kill -> running again, workers: {floor.workers}", floor.running, rekindle.running)
        )
        lines.append(_line(f"kill -> death known, workers: {floor.workers}", floor.seen, rekindle.seen))
    lines.append(_line(f"{MASS} killed at once -> all running", restarts.mass_floor, restarts.mass))
    lines.append(_line(f"{CROWD} killed at once -> all running", None, restarts.crowd))
    lines += ["", *(_cost_line(cost) for cost in costs)]
    return "\n".join(lines)


def _line(what: str, floor: Summary | None, rekindle: Summary) -> str:
    ratio = "" if floor is None else f"{rekindle.median_ms / floor.median_ms:.2f}"
    return f"{what:<44}{_cell(floor):>18}{_cell(rekindle):>18}{ratio:>8}"


def _cell(summary: Summary | None) -> str:
    return "-" if summary is None else f"{summary.median_ms:.2f} ({summary.p99_ms:.2f})"


def _cost_line(cost: Cost) -> str:
    beat = f"{cost.heartbeat_s} s heartbeats" if cost.heartbeat_s else "no heartbeats"
    idle = cost.idle
    return (
        f"{cost.workers} workers, {beat}: {cost.pss_mb:.1f} MB PSS ({cost.worked_pss_mb:.1f} when each has "
        f"died once), {cost.threads} threads, "
        f"{idle.wakeups} wake-ups and {idle.cpu_percent:.2f} % of a core in {idle.seconds:.0f} s"
    )


def _machine() -> dict[str, object]:
    return {
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


if __name__ == "__main__":
    main()
