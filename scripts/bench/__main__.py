"""Measures, prints one table and writes JSON where asked: ./scripts/bench/run [--json FILE]."""

from __future__ import annotations

import argparse
import json
import os
import platform
from dataclasses import asdict
from pathlib import Path

from .floor import FloorFigures, measure_floor, programs
from .measure import Summary


def main() -> None:
    """Run the benchmark as the arguments say."""
    options = _arguments()
    with programs() as built:
        print(f"measuring the floor ({built.kind}) ...", flush=True)
        floor = measure_floor(built, rounds=options.rounds, mass_rounds=options.mass_rounds)
    print(_table(floor))
    if options.json:
        document = {"machine": _machine(), "floor": asdict(floor)}
        options.json.write_text(json.dumps(document, indent=2) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench/run", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    parser.add_argument("--rounds", type=int, default=300, help="single kills for each number of workers")
    parser.add_argument(
        "--mass-rounds", type=int, default=20, help="how often all workers are killed at once"
    )
    return parser.parse_args()


def _table(floor: FloorFigures) -> str:
    lines = [f"{'floor, times in ms':<36}{'median':>10}{'p99':>10}{'samples':>10}"]
    for row in floor.rows:
        lines.append(_line(f"kill -> running, workers: {row.workers}", row.running))
        lines.append(_line(f"kill -> seen, workers: {row.workers}", row.seen))
    lines.append(_line(f"{floor.mass_workers} killed at once -> all running", floor.mass))
    return "\n".join(lines)


def _line(what: str, summary: Summary) -> str:
    return f"{what:<36}{summary.median_ms:>10.3f}{summary.p99_ms:>10.3f}{summary.samples:>10}"


def _machine() -> dict[str, object]:
    return {
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


if __name__ == "__main__":
    main()
