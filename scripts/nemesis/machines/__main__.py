"""Attacks a real cluster: machines with networks of their own, a real PostgreSQL, real agents and workers.

Each machine is a network namespace and a process namespace on this computer, joined by a virtual switch. The
attack kills and pauses machines, cuts and slows cables, cuts single nodes from the database or from each
other, splits the network, freezes and kills agents, and kills, pauses and cuts off the database. The workers
write a line every 50 ms; afterwards these lines say whether two processes of a worker ever overlapped,
whether a token ever fell, whether anything but a crash was counted, and whether all of them run again.

The seed chooses the faults and their times. A run that breaks a promise keeps its files and names the folder.
Nothing is left behind, also if this is killed: no namespace has a name. It needs root and iproute2.

Ten minutes, before a release:

  sudo ./scripts/chaos/cables --minutes 10

The times that the README of clusters promises, measured:

  sudo ./scripts/chaos/cables --measure --rounds 20

Exit codes: 0 every promise held, 1 a promise was broken, 2 bad usage, or the run could not be made.
"""

from __future__ import annotations

import argparse
import json
import sys

from .attack import run
from .namespaces import RoomError


def main() -> int:
    """Run what the arguments name; returns the exit code."""
    options = _arguments()
    told = (lambda text: None) if options.quiet else _tell
    try:
        if options.measure:
            from .bars import measured

            figures = measured(options.rounds, told)
            sys.stdout.write(json.dumps(figures, indent=2) + "\n")
            return 0
        verdict = run(options.seed, options.minutes, told, nodes=options.nodes, workers=options.workers)
    except RoomError as error:
        _tell(str(error))
        return 2
    found = ", ".join(f"{number} {name}" for name, number in verdict.figures.items())
    sys.stdout.write(f"seed {verdict.seed}, {verdict.seconds / 60:g} min: {found}\n")
    for broken in verdict.broken:
        sys.stdout.write(f"  BROKEN  {broken.check}\n    {broken.text}\n")
    end = "every promise held" if verdict.folder is None else f"the files of the run are in {verdict.folder}"
    sys.stdout.write(f"  {end}\n")
    return 1 if verdict.broken else 0


def _tell(text: str) -> None:
    sys.stderr.write(f"cables: {text}\n")
    sys.stderr.flush()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/chaos/cables", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1, help="chooses the faults and their times (default: 1)")
    parser.add_argument("--minutes", type=float, default=1.0, metavar="N", help="how long (default: 1)")
    parser.add_argument(
        "--nodes", type=int, default=3, metavar="N", help="machines with an agent (default: 3)"
    )
    parser.add_argument("--workers", type=int, default=6, metavar="N", help="workers on them (default: 6)")
    parser.add_argument("--measure", action="store_true", help="measure how long everything takes instead")
    parser.add_argument("--rounds", type=int, default=20, metavar="N", help="kills and cuts to measure (20)")
    parser.add_argument("--quiet", action="store_true", help="print no progress to standard error")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
