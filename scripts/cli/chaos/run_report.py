"""The results of scenario runs, as text and as JSON."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import click

from rekindle.actors.simulation import Outcome, account, lines

from ..render.text import printable

_BAR = 24
_REFRESH_S = 0.1


@dataclass(slots=True)
class Failure:
    """One failed run, shrunk as far as possible, and the command that repeats it."""

    outcome: Outcome
    repeat: str

    @property
    def what(self) -> str:
        """The first violation or unmet expectation."""
        return str(self.outcome.violations[0]) if self.outcome.violations else self.outcome.unmet[0]

    def lines(self) -> Iterator[str]:
        """The failure as lines of text."""
        outcome = self.outcome
        yield f"  seed {outcome.seed}: {self.what}"
        entries = outcome.history.entries
        last = outcome.violations[0].entry + 1 if outcome.violations else len(entries)
        worker = self._concerned() or (
            getattr(entries[last - 1], "worker", None) if outcome.violations else None
        )
        yield from (f"    {printable(line)}" for line in account(entries[:last], worker))
        yield f"  again: {self.repeat}"

    def _concerned(self) -> str | None:
        """The worker with whose name the sentence of the violation or unmet expectation begins."""
        outcome = self.outcome
        what = outcome.violations[0].what if outcome.violations else outcome.unmet[0]
        return next((id_ for id_ in outcome.scenario.ids if what.startswith(f"{id_} ")), None)

    def document(self) -> dict[str, Any]:
        """The failure for JSON."""
        violation = self.outcome.violations[0] if self.outcome.violations else None
        return {
            "seed": self.outcome.seed,
            "rule": None if violation is None else violation.rule,
            "what": self.what,
            "at_s": None if violation is None else violation.at,
            "unmet": list(self.outcome.unmet),
            "repeat": self.repeat,
            "history": list(lines(self.outcome.history)),
        }


@dataclass(slots=True)
class Tally:
    """The results of many runs of one scenario."""

    name: str
    file: str
    mode: str
    runs: int = 0
    moves: int = 0
    lasted_s: float = 0.0
    """The scenario time of all runs, in seconds."""
    took_s: float = 0.0
    """The real time of all runs, in seconds."""
    digest: str = ""
    """Of the history of the last run."""
    failures: list[Failure] = field(default_factory=list)
    failed_runs: int = 0

    def add(self, outcome: Outcome) -> None:
        """Add the outcome of a run."""
        self.runs += 1
        self.moves += len(outcome.steps)
        self.lasted_s += outcome.lasted_s
        self.failed_runs += not outcome.passed

    def line(self) -> str:
        """One line of text after the last run."""
        word = "ok    " if not self.failed_runs else "FAILED"
        runs = "1 run" if self.runs == 1 else f"{self.runs} runs"
        rate = f", {self.runs / self.took_s:.0f} a second" if self.runs > 1 and self.took_s > 0 else ""
        wrong = f", {self.failed_runs} with violations" if self.failed_runs else ""
        return f"{word} {self.name}: {runs}{rate}, {self.moves} moves, {self._time()}{wrong}"

    def _time(self) -> str:
        """The scenario time; for real processes also the real time."""
        if self.mode == "virtual":
            return f"{self.lasted_s:.0f} s of virtual time"
        return f"{self.lasted_s:.0f} s of the scenario in {self.took_s:.0f} s"

    def document(self) -> dict[str, Any]:
        """The results for JSON."""
        return {
            "name": self.name,
            "file": self.file,
            "mode": self.mode,
            "runs": self.runs,
            "failed_runs": self.failed_runs,
            "moves": self.moves,
            "scenario_s": round(self.lasted_s, 3),
            "took_s": round(self.took_s, 3),
            "digest": self.digest,
            "failures": [failure.document() for failure in self.failures],
        }


class ProgressBar:
    """A progress bar on standard error, if that is a terminal."""

    def __init__(self, total: int, *, wanted: bool) -> None:
        self._total = total
        self._shown = wanted and total > 1 and sys.stderr is not None and sys.stderr.isatty()
        self._began = self._drawn = time.monotonic()

    def show(self, tally: Tally) -> None:
        """Draw the bar, at most every 0.1 s."""
        now = time.monotonic()
        if not self._shown or (now - self._drawn < _REFRESH_S and tally.runs < self._total):
            return
        self._drawn = now
        full = _BAR * tally.runs // self._total
        bar = "█" * full + "·" * (_BAR - full)
        rate = tally.runs / max(now - self._began, 1e-9)
        text = f"{bar} {tally.runs}/{self._total} runs, {tally.failed_runs} violations, {rate:.0f} seeds/s"
        click.echo(f"\r\x1b[K{text}", nl=False, err=True)

    def end(self) -> None:
        """Erase the bar."""
        if self._shown:
            click.echo("\r\x1b[K", nl=False, err=True)
