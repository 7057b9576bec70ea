"""Measures the floor and Rekindle in one run, prints one table, and writes JSON where asked."""

from __future__ import annotations

import argparse
import json
import os
import platform
from dataclasses import asdict
from pathlib import Path

from .events import lines, measure_events
from .floor import FloorFigures, measure_floor, programs
from .measure import Summary
from .storm import chaos_table, measure_chaos
from .supervisor import Cost, SupervisorFigures, measure_supervisor


def main() -> None:
    """Run the benchmark as the arguments say."""
    options = _arguments()
    with programs() as built:
        print(f"measuring the floor ({built.kind}) ...", flush=True)
        floor = measure_floor(built, rounds=options.rounds, mass_rounds=options.mass_rounds)
        print("measuring Rekindle ...", flush=True)
        rekindle = measure_supervisor(
            built, rounds=options.rounds, mass_rounds=options.mass_rounds, idle_s=options.idle
        )
        print("measuring the events ...", flush=True)
        events = measure_events(built, rounds=options.rounds)
    print("measuring chaos in virtual time ...", flush=True)
    chaos = measure_chaos()
    print(_table(floor, rekindle))
    print("\n".join(lines(events)))
    print(chaos_table(chaos))
    if options.json:
        document = {
            "machine": _machine(),
            "floor": asdict(floor),
            "rekindle": asdict(rekindle),
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


def _table(floor: FloorFigures, rekindle: SupervisorFigures) -> str:
    lines = [f"{'times in ms, median (p99)':<44}{'floor':>18}{'Rekindle':>18}{'ratio':>8}"]
    for base, row in zip(floor.rows, rekindle.rows, strict=True):
        lines.append(_line(f"kill -> running again, workers: {row.workers}", base.running, row.running))
        lines.append(_line(f"kill -> death known, workers: {row.workers}", base.seen, row.seen))
    for workers, summary in rekindle.mass:
        base_mass = floor.mass if workers == floor.mass_workers else None
        lines.append(_line(f"{workers} killed at once -> all running", base_mass, summary))
    lines += ["", *(_cost_line(cost) for cost in rekindle.costs)]
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
        f"{cost.workers} workers, {beat}: {cost.pss_mb:.1f} MB PSS, {cost.threads} threads, "
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
