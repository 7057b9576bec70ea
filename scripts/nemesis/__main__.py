"""Attacks one real supervisor with twenty real workers, and compares the truth with what Rekindle stored.

The workers (functions with heartbeats, plain commands, job workers, a group that is scaled) write what
they do to files of their own. The attack kills, stops, freezes and upgrades supervisors, kills, stops and
freezes workers, locks the database, fills its disk, freezes, cuts and restarts the PostgreSQL server, and
gives orders: reload, scale, pause, stop, start, restart, reset. Afterwards every promise is checked: no
generation is used twice, no life overlaps, no death is lost or invented, counters equal the history, events
have no gap, no job is lost, executed twice at a time, continued from another than its last checkpoint or
blamed for what it did not do, no process is left.

The seed chooses the moves and their times. Which process a move meets depends on the machine, so a run is
similar when it is repeated, not identical. A run that breaks a promise keeps its files and names the folder.

Before a release, ten minutes on each database; the tests of CI take half a minute on each:

  ./scripts/chaos/nemesis --minutes 10

Progress goes to standard error; the verdict on each database comes last, with how much happened.

Exit codes: 0 every promise held, 1 a promise was broken, 2 bad usage, or the run could not be made.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict

from .run import Verdict, run

DATABASES = ("sqlite", "postgresql")
MOST_SHOWN = 5
"""How many violations of one check are printed."""


def main() -> int:
    """Run what the arguments name; returns the exit code."""
    options = _arguments()
    kinds = DATABASES if options.database == "both" else (options.database,)
    told = (lambda text: None) if options.quiet else _tell
    verdicts = []
    for kind in kinds:
        try:
            verdict = run(kind, options.seed, options.minutes, told)
        except RuntimeError as error:
            _tell(str(error))
            return 2
        verdicts.append(verdict)
        if not options.json:
            sys.stdout.write("\n".join(lines(verdict)) + "\n")
            sys.stdout.flush()
    if options.json:
        sys.stdout.write(json.dumps([verdict.document() for verdict in verdicts], indent=2) + "\n")
    return 1 if any(verdict.violations for verdict in verdicts) else 0


def _tell(text: str) -> None:
    sys.stderr.write(f"nemesis: {text}\n")
    sys.stderr.flush()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/chaos/nemesis",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, default=1, help="chooses the moves and their times (default: 1)")
    parser.add_argument(
        "--minutes",
        "--for",
        type=float,
        default=1.0,
        metavar="N",
        help="how long each database is attacked (default: 1; the release check takes 10)",
    )
    parser.add_argument("--database", choices=(*DATABASES, "both"), default="both", help="default: both")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of text")
    parser.add_argument("--quiet", action="store_true", help="print no progress to standard error")
    return parser.parse_args()


def lines(verdict: Verdict) -> list[str]:
    """The verdict for people."""
    found = ", ".join(f"{number} {name}" for name, number in verdict.figures.items())
    text = [f"{verdict.database}, seed {verdict.seed}, {verdict.minutes:g} min: {found}"]
    text += [f"  skipped: {each}" for each in verdict.skipped]
    by_check: dict[str, list[str]] = defaultdict(list)
    for violation in verdict.violations:
        by_check[violation.check].append(violation.text)
    for check, texts in by_check.items():
        text.append(f"  BROKEN  {check}: {len(texts)}")
        text += [f"    {each}" for each in texts[:MOST_SHOWN]]
        if len(texts) > MOST_SHOWN:
            text.append(f"    and {len(texts) - MOST_SHOWN} more")
    if verdict.folder is None:
        return [*text, "  every promise held"]
    return [*text, f"  the files of the run are in {verdict.folder}"]


if __name__ == "__main__":
    sys.exit(main())
