"""Searches for every planted mistake from the beginning, and prints what convicts it."""

from __future__ import annotations

import sys
from itertools import islice

import click
import pytest
from loguru import logger
from tests.chaos.mutants.catalogue import CATALOGUE
from tests.chaos.mutants.mutant import MOST_LINES, MOST_RUNS, Mutant, all_runs, search


def main(words: list[str]) -> int:
    """Search for all mutants, or for the named ones; the number of those that are not convicted."""
    most = int(words.pop(0)) if words and words[0].isdigit() else MOST_RUNS
    logger.disable("rekindle")
    chosen = [mutant for mutant in CATALOGUE if not words or mutant.name in words]
    return sum(not _is_convicted(mutant, most, shown=bool(words)) for mutant in chosen)


def _is_convicted(mutant: Mutant, most_runs: int, *, shown: bool) -> bool:
    with pytest.MonkeyPatch.context() as patch:
        mutant.plant(patch)
        convicted = search(islice(all_runs(), most_runs))
    if convicted is None:
        click.echo(f"MISSED {mutant.name}: {most_runs} runs")
        return False
    where = f"run {convicted.runs}, {convicted.scenario} --seed {convicted.outcome.seed}"
    click.echo(f"ok     {mutant.name}: {where}, {len(convicted.report)} lines: {convicted.rule}")
    if shown:
        click.echo("\n".join(convicted.report))
    return len(convicted.report) <= MOST_LINES


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
