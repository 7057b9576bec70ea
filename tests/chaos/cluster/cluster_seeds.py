"""The long form of the cluster tests: thousands of seeds, and every planted mistake.

`./scripts/chaos/clusters [SEEDS] [FIRST]` runs this.
"""

from __future__ import annotations

import random
import sys
from time import perf_counter

import click
from loguru import logger
from tests.chaos.cluster.cluster_mutants import CLUSTER_MUTANTS
from tests.chaos.cluster.cluster_mutants import main as mutants
from tests.chaos.cluster.clusters import at_random

from rekindle.actors.simulation.cluster.cluster_run import ClusterOutcome, run_cluster

AIMED = 200
"""How many seeds the scenarios of the mutants get without a mistake."""
REPORTED = 10


def main(seeds: int, first: int) -> int:
    """Run everything; the exit code."""
    logger.disable("rekindle")
    began, virtual_s, failed = perf_counter(), 0.0, 0
    for seed in range(first, first + seeds):
        outcome = run_cluster(at_random(seed, 10 if seed % 2 else 25), seed)
        virtual_s += outcome.lasted_s
        failed += _report(outcome)
    took = perf_counter() - began
    click.echo(
        f"{seeds} runs of moves at random, {virtual_s / max(took, 1e-9):.0f} virtual s/s: {failed} broken"
    )
    aimed = 0
    for mutant in CLUSTER_MUTANTS:
        for seed in range(min(seeds, AIMED)):
            aimed += _report(run_cluster(mutant.aim(seed, random.Random(seed)), seed))
    click.echo(f"{len(CLUSTER_MUTANTS)} scenarios in which one rule matters most: {aimed} runs broken")
    missed = 0
    for line in mutants(3000, ()):
        missed += "not convicted" in line
        click.echo(line)
    return 1 if failed + aimed + missed else 0


def _report(outcome: ClusterOutcome) -> bool:
    for broken in outcome.broken[:REPORTED]:
        click.echo(f"{outcome.scenario.name}, seed {outcome.seed}: {broken.rule}: {broken.what}")
    return not outcome.passed


if __name__ == "__main__":
    arguments = [int(each) for each in sys.argv[1:]]
    sys.exit(main(*(arguments + [1000, 0][len(arguments) :])))
