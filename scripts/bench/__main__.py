"""Measures Rekindle, prints the figures, and writes them as JSON on request.

The parts: `restarts` (from SIGKILL to running again, beside a bare loop in C), `crowds` (among 3,000
workers, and up to 3,000 killed at once), `warm` (the same for Python
functions, executed, warm and on standby), `start` (of `rekindle run`, and `rekindle status`), `costs`
(memory, threads and CPU time while nothing happens), `probes` (CPU time of a thousand liveness probes),
`events` (from SIGKILL to the event at clients), `output` (how fast a worker can write, beside a plain pipe),
`flood` (the same into a log file, and the restart of another worker meanwhile), `executors` (tasks through
RekindleExecutor, beside ProcessPoolExecutor, loky and pebble), `upgrades` (of the supervisor: how long no
worker is watched) and `chaos` (storms and scenarios in virtual time). With --against, `restarts`, `costs`,
`events` and `chaos` measure this checkout and another one by turns.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from .checkout import THIS, Checkout
from .comparison import (
    HEADING,
    Comparison,
    Sides,
    compare_chaos,
    compare_costs,
    compare_events,
    compare_restarts,
)
from .floor import Programs, programs
from .measure import Summary
from .parts.crowds import crowd_lines, measure_crowds
from .parts.events import lines, measure_events
from .parts.executors import executor_table, measure_executors
from .parts.flood import flood_line, measure_flood
from .parts.output import line, measure_output
from .parts.probes import line as probe_line
from .parts.probes import measure_probes
from .parts.restarts import MASS, RestartFigures, measure_restarts
from .parts.start import measure_start, start_lines
from .parts.supervisor import Cost, measure_costs, packages_pss_mb
from .parts.upgrades import measure_upgrades, upgrade_line
from .parts.warm import measure_warm, warm_lines
from .peers.race import Race, race_table, run_race
from .storm import chaos_table, measure_chaos

PARTS = (
    *(
        "restarts",
        "crowds",
        "warm",
        "start",
        "costs",
        "probes",
        "events",
        "output",
        "flood",
        "executors",
        "upgrades",
    ),
    "chaos",
)


def main() -> None:
    """Run the parts that the arguments name."""
    options = _arguments()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # ends what it has started
    with programs() as built:
        if options.peers:
            _race(built, options)
            return
        figures = (_measure if options.against is None else _compare)(built, options)
    if options.json:
        document = {"machine": _machine(), **figures}
        options.json.write_text(json.dumps(document, indent=2) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench/run", description=__doc__)
    parser.add_argument(
        "parts",
        nargs="*",
        metavar="PART",
        help=f"what to measure: {', '.join(PARTS)}; default: all",
    )
    parser.add_argument(
        "--against", type=Path, metavar="DIR", help="compare with the code of another checkout, by turns"
    )
    parser.add_argument(
        "--peers",
        action="store_true",
        help="measure other supervisors by turns, installed into a temporary folder; takes up to 10 minutes",
    )
    parser.add_argument(
        "--peers-in", type=Path, metavar="DIR", help="with --peers: install them there, and use them again"
    )
    parser.add_argument(
        "--only", default="", metavar="NAME,…", help="with --peers: the sides whose names begin so"
    )
    parser.add_argument(
        "--counts", default="10,100,1000", metavar="N,…", help="with --peers: numbers of workers, of these"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to a file as well")
    parser.add_argument("--rounds", type=int, default=300, help="single kills for each number of workers")
    parser.add_argument(
        "--mass-rounds", type=int, default=20, help="how often all workers are killed at once"
    )
    parser.add_argument(
        "--idle", type=float, default=10.0, help="seconds for which an idle supervisor is observed"
    )
    options = parser.parse_args()
    if unknown := sorted(set(options.parts) - set(PARTS)):
        parser.error(f"unknown part: {', '.join(unknown)}; the parts are {', '.join(PARTS)}")
    options.parts = options.parts or list(PARTS)
    return options


def _race(built: Programs, options: argparse.Namespace) -> None:
    if built.kind != "c":
        raise SystemExit("the race with other supervisors needs a C compiler")
    race = Race(
        counts=tuple(int(count) for count in options.counts.split(",")),
        names=tuple(name for name in options.only.split(",") if name),
        folder=options.peers_in,
    )
    begun = os.getloadavg()[0]
    runners = run_race(built, race, partial(print, flush=True))
    machine = f"{os.cpu_count()} cores, load average {begun:.1f} before and {os.getloadavg()[0]:.1f} after"
    print(f"\n{datetime.now(UTC):%Y-%m-%d}, {machine}\n\n{race_table(runners)}")


def _measure(built: Programs, options: argparse.Namespace) -> dict[str, object]:
    """Measure this checkout, print the figures of each part when it is done, and return all of them."""
    figures: dict[str, object] = {}
    if "restarts" in options.parts:
        print(f"measuring restarts, the floor ({built.kind}) and Rekindle by turns ...", flush=True)
        restarts = measure_restarts(built, rounds=options.rounds, mass_rounds=options.mass_rounds)
        print(_table(restarts), flush=True)
        figures["restarts"] = asdict(restarts)
    if "warm" in options.parts:
        print("measuring Python workers: executed, warm and on standby ...", flush=True)
        warm = measure_warm(built, rounds=max(1, options.rounds // 3))
        print("\n".join(warm_lines(warm)), flush=True)
        figures["warm"] = asdict(warm)
    if "crowds" in options.parts:
        print("measuring crowds: the floor and Rekindle by turns ...", flush=True)
        crowds = measure_crowds(built, rounds=max(1, options.rounds // 3))
        print("\n".join(crowd_lines(crowds)), flush=True)
        figures["crowds"] = asdict(crowds)
    if "start" in options.parts:
        print("measuring the start of `rekindle run`, and `rekindle status` ...", flush=True)
        start = measure_start(built)
        print("\n".join(start_lines(start)), flush=True)
        figures["start"] = asdict(start)
    if "costs" in options.parts:
        print("measuring the cost of an idle supervisor ...", flush=True)
        costs, packages = measure_costs(built, options.idle), packages_pss_mb()
        print("\n".join(map(_cost_line, costs)))
        print(
            f"an interpreter with the packages loaded and a database open: {packages:.1f} MB PSS", flush=True
        )
        figures |= {"costs": [asdict(cost) for cost in costs], "packages_pss_mb": packages}
    if "probes" in options.parts:
        print("measuring the cost of probes ...", flush=True)
        probes = measure_probes()
        print(probe_line(probes), flush=True)
        figures["probes"] = asdict(probes)
    if "events" in options.parts:
        print("measuring events ...", flush=True)
        events = measure_events(built, rounds=options.rounds)
        print("\n".join(lines(events)), flush=True)
        figures["events"] = asdict(events)
    if "output" in options.parts:
        print("measuring output ...", flush=True)
        output = measure_output()
        print(line(output), flush=True)
        figures["output"] = asdict(output)
    if "flood" in options.parts:
        print("measuring a flood into a log file ...", flush=True)
        flood = measure_flood()
        print(flood_line(flood), flush=True)
        figures["flood"] = asdict(flood)
    if "executors" in options.parts:
        print("measuring executors ...", flush=True)
        executors, missing = measure_executors()
        print(executor_table(executors, missing), flush=True)
        figures["executors"] = [asdict(each) for each in executors]
    if "upgrades" in options.parts:
        print("measuring upgrades of the supervisor ...", flush=True)
        upgrades = measure_upgrades()
        print(upgrade_line(upgrades), flush=True)
        figures["upgrades"] = asdict(upgrades)
    if "chaos" in options.parts:
        print("measuring chaos in virtual time ...", flush=True)
        chaos = measure_chaos()
        print(chaos_table(chaos), flush=True)
        figures["chaos"] = asdict(chaos)
    return figures


def _compare(built: Programs, options: argparse.Namespace) -> dict[str, object]:
    """Measure both checkouts by turns, print each comparison when it is done, and return all of them."""
    sides = (Checkout(options.against.resolve()), THIS)
    for side in sides:
        side.check()
    print(f"other: {sides[0].folder}\nthis:  {THIS.folder}\n{HEADING}", flush=True)
    done = []
    for comparison in _comparisons(sides, built, options):
        print(comparison.line(), flush=True)
        done.append(asdict(comparison))
    return {"comparisons": done}


def _comparisons(sides: Sides, built: Programs, options: argparse.Namespace) -> Iterator[Comparison]:
    rounds = options.rounds
    for part in options.parts:
        match part:
            case "restarts":
                yield from compare_restarts(sides, built, rounds=rounds, mass_rounds=options.mass_rounds)
            case "costs":
                yield from compare_costs(sides, built)
            case "events":
                yield from compare_events(sides, built, rounds=rounds)
            case "chaos":
                yield from compare_chaos(sides)
            case _:
                pass  # the other parts have their yardsticks in every run


def _table(restarts: RestartFigures) -> str:
    lines = [f"{'times in ms, median (p99)':<44}{'floor':>18}{'Rekindle':>18}{'ratio':>8}"]
    for pair in restarts.single:
        floor, rekindle = pair.floor, pair.rekindle
        lines.append(
            _line(f"kill -> running again, workers: {floor.workers}", floor.running, rekindle.running)
        )
        lines.append(
            _line(f"... killed again at once, workers: {floor.workers}", floor.again, rekindle.again)
        )
        lines.append(_line(f"kill -> death known, workers: {floor.workers}", floor.seen, rekindle.seen))
    lines.append(_line(f"{MASS} killed at once -> all running", restarts.mass_floor, restarts.mass))
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
        f"{cost.workers} workers, {beat}: {cost.pss_mb:.1f} MB PSS ({cost.worked_pss_mb:.1f} after each "
        f"worker died once), {cost.threads} threads, "
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
