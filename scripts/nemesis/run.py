"""One run on one database: attack, aftermath, verdict."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .aftermath import collected, wait_until_all_is_well
from .attack import Attack
from .checks import CHECKS, name_of, violations
from .databases import Database, postgres_database, sqlite_database
from .evidence import Evidence, Violation
from .fleet.workers_file import GROUPS
from .jobs import Enqueuer
from .journal import Journal
from .plan import drawn

Told = Callable[[str], None]


@dataclass(frozen=True)
class Verdict:
    """What came of a run."""

    database: str
    seed: int
    minutes: float
    figures: dict[str, int]
    violations: tuple[Violation, ...]
    folder: str | None
    """The files of the run; they are kept if a promise was broken."""
    skipped: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """The verdict as JSON."""
        counts = Counter(each.check for each in self.violations)
        checks = {name_of(check): counts[name_of(check)] for check in CHECKS}
        return {**asdict(self), "holds": not self.violations, "checks": checks}


def run(kind: str, seed: int, minutes: float, told: Told) -> Verdict:
    """Attack a supervisor on a database of this kind, and check every promise.

    Raises:
        RuntimeError: the database or the supervisor cannot be started.
    """
    folder = Path(tempfile.mkdtemp(prefix=f"rekindle-nemesis-{kind}-"))
    for name in ("truth", "locks", "state"):
        (folder / name).mkdir()
    (folder / "state").chmod(0o700)
    keep = True
    try:
        evidence, skipped = _attacked(kind, folder, seed, minutes, told)
        broken = violations(evidence)
        keep = bool(broken)
        kept = str(folder) if keep else None
        return Verdict(kind, seed, minutes, figures(evidence), broken, kept, skipped)
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def _attacked(
    kind: str, folder: Path, seed: int, minutes: float, told: Told
) -> tuple[Evidence, tuple[str, ...]]:
    journal = Journal(folder / "nemesis.jsonl")
    with _database(kind, folder / "state") as database:
        skipped: tuple[str, ...] = ()
        if kind == "sqlite" and "full" not in database.faults:
            skipped = ("a full disk: only root can mount a small file system",)
        attack = Attack(folder, folder / "state", database, journal)
        attack.supervisor.start()
        told(f"{kind}: {sum(GROUPS.values())} workers start; the files are in {folder}")
        try:
            unready = _wait_for_the_start(attack, database)
            if unready:
                raise RuntimeError(f"the workers do not start: {'; '.join(unready)}; see {folder}")
            with Enqueuer(database.url, seed, journal):
                attack.run(drawn(seed, minutes * 60.0, database.faults), told)
            told("the attack is over; waiting until every worker and every job has come to its end")
            unreached = wait_until_all_is_well(attack.supervisor, database)
        finally:
            database.repair()
            attack.supervisor.stop()
        return collected(folder, journal, database, unreached), skipped


def _wait_for_the_start(attack: Attack, database: Database) -> tuple[str, ...]:
    deadline = time.monotonic() + 60.0
    while not attack.supervisor.answers():
        if attack.supervisor.has_ended() or time.monotonic() > deadline:
            return (f"the supervisor does not answer: {attack.supervisor.log.read_text()[-2000:]}",)
        time.sleep(0.1)
    return wait_until_all_is_well(attack.supervisor, database)


def _database(kind: str, state: Path) -> AbstractContextManager[Database]:
    return postgres_database() if kind == "postgresql" else sqlite_database(state)


def figures(evidence: Evidence) -> dict[str, int]:
    """How much happened."""
    return {
        "supervisors": len(evidence.supervisors),
        "lives": len(evidence.lives),
        "signals": len(evidence.signals),
        "outages": len(evidence.outages),
        "deaths": len(evidence.deaths),
        "events": len(evidence.events),
        "jobs": len(evidence.jobs),
        "executions": len(evidence.executions),
    }
