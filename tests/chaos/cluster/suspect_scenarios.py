"""Virtual clusters with a bad node, without one, and with brakes that were taken away on purpose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from rekindle.actors.cluster.rules.suspects import node_rulings, suspicion
from rekindle.actors.simulation.cluster.cluster_moves import ClusterScenario, ClusterStep, Sicken
from rekindle.actors.simulation.cluster.cluster_rules import (
    BRAKES,
    INNOCENCE,
    LAST,
    Ruled,
)
from rekindle.actors.simulation.cluster.cluster_run import ClusterOutcome, run_cluster

BEGINS_S, ENDS_S = 20.0, 150.0


def ill(*what: str, life_s: float = 8.0) -> tuple[ClusterStep, ...]:
    """Sick from the same moment on."""
    return tuple(ClusterStep(BEGINS_S, Sicken(each, life_s, ENDS_S - BEGINS_S)) for each in what)


QUIET = ClusterScenario("suspects", nodes=5, workers=15, groups=3, lasts_s=ENDS_S, worker_life_s=36_000.0)
BAD_NODE = replace(QUIET, steps=ill("n2"))
BAD_WORKERS = replace(QUIET, steps=ill("w:0", "w:5", "w:13"))
"""Three copies of three groups, which are on one node at first."""
TWO_BAD_NODES = replace(QUIET, nodes=9, workers=45, groups=5, lasts_s=60.0, steps=ill("n2", "n4"))
INNOCENT: dict[str, ClusterScenario] = {
    "flaky": replace(QUIET, worker_life_s=30.0),
    "bad group": replace(QUIET, steps=ill("g1")),
    "outage": replace(QUIET, steps=ill("all", life_s=5.0)),
    "bad workers": BAD_WORKERS,
}


def rulings(outcome: ClusterOutcome) -> list[tuple[float, str, str]]:
    """When which node was ruled on, before the faults ended."""
    found = [each for each in outcome.entries if isinstance(each, Ruled) and each.at < ENDS_S]
    return [(each.at, each.node, each.kind) for each in found]


# ── mistakes ─────────────────────────────────────────────────────────────────────────────

Patch = pytest.MonkeyPatch


@dataclass(frozen=True, slots=True)
class SuspectMutant:
    """A mistake, the cluster that shows it, and the rule that it breaks."""

    name: str
    plant: Callable[[Patch], None]
    rule: str
    scenario: ClusterScenario


def has_no_control_group(patch: Patch) -> None:
    patch.setattr(suspicion, "_share", lambda here, total: 1e-3)
    convicts_without_witnesses(patch)


def convicts_without_witnesses(patch: Patch) -> None:
    patch.setattr(suspicion, "_have_held", lambda case, elsewhere, hold_s, now: True)


def holds_as_many_as_it_likes(patch: Patch) -> None:
    patch.setattr(suspicion, "LARGEST_SHARE", 1)


def spares_no_node(patch: Patch) -> None:
    patch.setattr(node_rulings, "is_needed", lambda fleet, node: False)


SUSPECT_MUTANTS: tuple[SuspectMutant, ...] = (
    SuspectMutant("no control group", has_no_control_group, INNOCENCE, INNOCENT["outage"]),
    SuspectMutant("no witnesses", convicts_without_witnesses, INNOCENCE, BAD_WORKERS),
    SuspectMutant("no limit", holds_as_many_as_it_likes, BRAKES, TWO_BAD_NODES),
    SuspectMutant("no spared node", spares_no_node, LAST, replace(QUIET, bound=1, steps=ill("n1"))),
)


def shown(mutant: SuspectMutant, seeds: int) -> bool:
    """Whether a run shows the mistake."""
    runs = (run_cluster(mutant.scenario, seed) for seed in range(seeds))
    return any(broken.rule == mutant.rule for outcome in runs for broken in outcome.broken)
