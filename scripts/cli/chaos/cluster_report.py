"""Runs a scenario of a cluster for many seeds, and reports what was broken, as text and as JSON."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from rekindle.actors.simulation.cluster.cluster_moves import CLUSTER_WORDS, ClusterScenario
from rekindle.actors.simulation.cluster.cluster_rules import ClusterEntry
from rekindle.actors.simulation.cluster.cluster_run import ClusterOutcome, drawn_steps, run_cluster

MOST_FAILURES = 3
MOST_LINES = 10

_NAMES = {kind: word for word, kind in CLUSTER_WORDS.items()}


@dataclass(slots=True)
class ClusterTally:
    """The results of many runs of one scenario."""

    scenario: ClusterScenario
    file: str
    runs: int = 0
    failed_runs: int = 0
    moves: int = 0
    lasted_s: float = 0.0
    took_s: float = 0.0
    digest: str = ""
    failures: list[ClusterOutcome] = field(default_factory=list)

    def line(self) -> str:
        """One line of text."""
        word = "ok    " if not self.failed_runs else "FAILED"
        runs = "1 run" if self.runs == 1 else f"{self.runs} runs"
        wrong = f", {self.failed_runs} with violations" if self.failed_runs else ""
        what = f"{runs} on {self.scenario.nodes} nodes, {self.moves} moves"
        return f"{word} {self.scenario.name}: {what}, {self.lasted_s:.0f} s of virtual time{wrong}"

    def document(self) -> dict[str, Any]:
        """The results for JSON."""
        return {
            "name": self.scenario.name,
            "file": self.file,
            "mode": "virtual",
            "nodes": self.scenario.nodes,
            "runs": self.runs,
            "failed_runs": self.failed_runs,
            "moves": self.moves,
            "scenario_s": round(self.lasted_s, 3),
            "took_s": round(self.took_s, 3),
            "digest": self.digest,
            "failures": [self._failure(each) for each in self.failures],
        }

    def _failure(self, outcome: ClusterOutcome) -> dict[str, Any]:
        first = outcome.broken[0]
        return {
            "seed": outcome.seed,
            "rule": first.rule,
            "what": first.what,
            "at_s": first.at,
            "repeat": repeats(self.file, outcome),
            "history": [entry_line(entry) for entry in outcome.entries],
        }

    def failure_lines(self) -> Iterator[str]:
        """The failures as lines of text."""
        for outcome in self.failures:
            first = outcome.broken[0]
            yield f"  seed {outcome.seed}: {first.rule}: {first.what}"
            yield from (f"    {line}" for line in step_lines(outcome))
            before = [entry for entry in outcome.entries if entry.at <= first.at]
            yield from (f"    {entry_line(entry)}" for entry in before[-MOST_LINES:])
            yield f"  again: {repeats(self.file, outcome)}"


def run_clusters(
    scenario: ClusterScenario, file: str, seeds: Iterable[int], only: tuple[int, ...] | None
) -> tuple[ClusterTally, ClusterOutcome]:
    """Run the scenario for every seed; the tally and the last outcome."""
    tally = ClusterTally(scenario, file)
    began = time.monotonic()
    outcome: ClusterOutcome | None = None
    for seed in seeds:
        outcome = _run(scenario, seed, only)
        tally.runs += 1
        tally.moves += len(outcome.steps)
        tally.lasted_s += outcome.lasted_s
        tally.failed_runs += not outcome.passed
        if not outcome.passed and len(tally.failures) < MOST_FAILURES:
            tally.failures.append(outcome if only is not None else smallest(outcome))
    assert outcome is not None  # there is at least one seed
    tally.took_s = time.monotonic() - began
    tally.digest = hashlib.sha256("\n".join(map(repr, outcome.entries)).encode()).hexdigest()[:16]
    return tally, outcome


def _run(scenario: ClusterScenario, seed: int, only: tuple[int, ...] | None) -> ClusterOutcome:
    if only is None:
        return run_cluster(scenario, seed)
    steps = drawn_steps(scenario, seed)
    chosen = tuple(steps[number] for number in only if number < len(steps))
    return run_cluster(scenario, seed, chosen)


def smallest(outcome: ClusterOutcome) -> ClusterOutcome:
    """The same failure with as few moves as possible."""
    rule, index = outcome.broken[0].rule, 0
    while index < len(outcome.steps):
        steps = outcome.steps[:index] + outcome.steps[index + 1 :]
        smaller = run_cluster(outcome.scenario, outcome.seed, steps)
        if any(each.rule == rule for each in smaller.broken):
            outcome = smaller
        else:
            index += 1
    return outcome


def repeats(file: str, outcome: ClusterOutcome) -> str:
    """The command that repeats a run."""
    drawn = drawn_steps(outcome.scenario, outcome.seed)
    numbers = [str(drawn.index(step)) for step in outcome.steps]
    only = "" if len(numbers) == len(drawn) else f" --only {','.join(numbers) or 'none'}"
    return f"rekindle chaos {file} --seed {outcome.seed}{only}"


def step_lines(outcome: ClusterOutcome) -> Iterator[str]:
    """The moves in words, with their numbers."""
    drawn = drawn_steps(outcome.scenario, outcome.seed)
    for step in outcome.steps:
        values = ", ".join(
            f"{name} = {getattr(step.move, name)!r}" for name in step.move.__dataclass_fields__
        )
        yield f"{step.at:8.2f}  move {drawn.index(step)}: {_NAMES[type(step.move)]}: {values}"


def entry_line(entry: ClusterEntry) -> str:
    """An entry of the history in words."""
    values = ", ".join(
        f"{name} {getattr(entry, name)}"
        for name in entry.__dataclass_fields__
        if name not in ("at", "counted")
    )
    return f"{entry.at:8.2f}  {type(entry).__name__.lower()}: {values}"
