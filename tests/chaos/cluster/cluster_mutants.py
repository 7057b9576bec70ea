"""Clusters that were broken on purpose: each mistake removes one rule, and chaos must convict it.

Each mutant names the scenario in which the rule matters most, so that few seeds are enough:
`python -m tests.chaos.cluster.cluster_mutants SEEDS [NAME…]` prints which seed convicts each.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import click
import pytest
from msgspec.structs import replace
from tests.chaos.cluster.cluster_aims import (
    Aim,
    answer_after_a_pause,
    clock_set_back,
    clock_set_forward,
    cordon_while_placing,
    directed,
    late_testimony,
    list_that_is_not_stored,
    member_returns,
    member_returns_as_a_new_life,
    one_loses_the_database,
    testimony_without_answer,
    two_of_three_lose_the_database,
    words,
)

from rekindle.actors.cluster.facts.tenures import Tenure, TenurePhase
from rekindle.actors.cluster.rules import holdings, lease, promise_exchange, silence, tenure_counters
from rekindle.actors.cluster.rules.lease import Lease
from rekindle.actors.simulation.cluster import cluster_tables, virtual_host
from rekindle.actors.simulation.cluster.cluster_rules import (
    CARRIED,
    COUNTERS,
    NOBODY_STOPS,
    OVERLAP,
    REASONS,
    RECOVERY,
    STATES,
    TOKENS,
    Broken,
)
from rekindle.actors.simulation.cluster.cluster_run import run_cluster
from rekindle.actors.simulation.cluster.cluster_tables import ClusterTables
from rekindle.actors.simulation.cluster.virtual_node import VirtualNode

Patch = pytest.MonkeyPatch


@dataclass(frozen=True, slots=True)
class ClusterMutant:
    """A mistake, the moves that show it, and the rule that it breaks."""

    name: str
    plant: Callable[[Patch], None]
    rule: str
    aim: Aim


# ── the lease ────────────────────────────────────────────────────────────────────────────


def counts_its_right_from_the_answer(patch: Patch) -> None:
    true = lease.renewed

    def renewed(known: Lease, terms: Any, answer: Any, now: float) -> Lease:
        after = true(known, terms, answer, now)
        return after if after is known else replace(after, right_until=now + terms.lease_s)

    patch.setattr(lease, "renewed", renewed)


def has_no_guardian(patch: Patch) -> None:
    patch.setattr(VirtualNode, "look", lambda self: None)
    patch.setattr(VirtualNode, "may_spawn", lambda self: True)


def does_not_fence(patch: Patch) -> None:
    from rekindle.actors.cluster.agent import Agent

    patch.setattr(Agent, "_fence_if_due", lambda self: None)


def applies_late_renewals(patch: Patch) -> None:
    patch.setattr(ClusterTables, "lateness", lambda self, request, now_ms: "")


def sets_a_lease_back(patch: Patch) -> None:
    patch.setattr(ClusterTables, "lease_until", lambda self, node, request, now_ms: now_ms + request.lease_ms)


def trusts_the_clock_of_the_database(patch: Patch) -> None:
    patch.setattr(silence, "silent", lambda watch, terms, now: dict(watch.seen))


# ── promises ─────────────────────────────────────────────────────────────────────────────


def declares_lost_without_witnesses(patch: Patch) -> None:
    patch.setattr(ClusterTables, "is_outvoted", lambda self, node: True)


def goes_on_without_promises(patch: Patch) -> None:
    patch.setattr(promise_exchange, "may_go_on", lambda node_id, lists, promised: True)


def goes_on_with_half_of_the_members(patch: Patch) -> None:
    def half(node_id: str, lists: Any, promised: Any) -> bool:
        return all(2 * len({node_id, *promised} & set(members)) >= len(members) for members in lists)

    patch.setattr(promise_exchange, "may_go_on", half)


def promises_after_it_testified(patch: Patch) -> None:
    patch.setattr(lease, "latest_testimony_ms", lambda known: 0)


def forgets_a_testimony_that_is_under_way(patch: Patch) -> None:
    patch.setattr(lease, "latest_testimony_ms", lambda known: known.testified_at_wall_ms)


def testifies_in_spite_of_a_promise(patch: Patch) -> None:
    true = lease.may_testify
    patch.setattr(
        lease, "may_testify", lambda known, terms, now: true(replace(known, promised_until=None), terms, now)
    )


def testifies_as_soon_as_it_lives_again(patch: Patch) -> None:
    true = lease.may_testify
    patch.setattr(
        lease, "may_testify", lambda known, terms, now: true(replace(known, began=-1e9), terms, now)
    )


def knows_only_its_latest_list_of_members(patch: Patch) -> None:
    patch.setattr(lease, "possible_members", lambda known: (known.living,))


def never_asks_for_promises(patch: Patch) -> None:
    patch.setattr(promise_exchange, "asks", lambda known, terms, now: False)


# ── assignments ──────────────────────────────────────────────────────────────────────────


def starts_without_a_right(patch: Patch) -> None:
    true = holdings.todo
    patch.setattr(
        holdings, "todo", lambda known, assigned, may_run, **more: true(known, assigned, True, **more)
    )
    patch.setattr(VirtualNode, "may_spawn", lambda self: True)


def gives_back_before_it_has_stopped(patch: Patch) -> None:
    true = holdings.todo

    def todo(known: Any, assigned: Any, may_run: bool, *, overdue: bool = False) -> Any:
        found = true(known, assigned, may_run, overdue=overdue)
        leaving = [each for each in assigned if each.phase is TenurePhase.RELEASING]
        return replace(found, give_back=tuple(leaving))

    patch.setattr(holdings, "todo", todo)


def places_what_has_a_node_already(patch: Patch) -> None:
    patch.setattr(ClusterTables, "is_free", lambda self, known, change: True)


def places_on_a_node_that_was_cordoned_meanwhile(patch: Patch) -> None:
    patch.setattr(ClusterTables, "takes", lambda self, node, change, now_ms: True)


# ── counters and tokens ──────────────────────────────────────────────────────────────────


def counts_the_end_of_a_tenure(patch: Patch) -> None:
    from rekindle.actors.cluster import agent

    true = tenure_counters.carried

    def carried(tenures: Any) -> Any:
        found = tuple(tenures)
        known = true(found)
        return replace(known, restart_count=known.restart_count + len(found) - 1)

    patch.setattr(agent, "carried", carried)


def drops_late_news_of_a_lost_node(patch: Patch) -> None:
    true = tenure_counters.merged

    def merged(stored: Tenure | None, news: Tenure) -> Tenure:
        return stored if stored is not None and stored.how is not None else true(stored, news)

    patch.setattr(cluster_tables, "merged", merged)


def places_again_under_the_same_epoch(patch: Patch) -> None:
    patch.setattr(cluster_tables, "next_epoch", lambda epoch, now_ms: max(1, epoch))


def gives_each_start_the_same_token(patch: Patch) -> None:
    patch.setattr(virtual_host, "token", lambda epoch, start: epoch << 20)


# ── where each rule matters ──────────────────────────────────────────────────────────────


CLUSTER_MUTANTS: tuple[ClusterMutant, ...] = (
    ClusterMutant(
        "right counted from the answer",
        counts_its_right_from_the_answer,
        OVERLAP,
        directed(3, answer_after_a_pause),
    ),
    ClusterMutant("no guardian", has_no_guardian, OVERLAP, words("freeze_agent")),
    ClusterMutant("no fence", does_not_fence, RECOVERY, words("cut_node", "freeze_agent")),
    ClusterMutant("late renewals", applies_late_renewals, OVERLAP, directed(3, late_testimony)),
    ClusterMutant("lease set back", sets_a_lease_back, OVERLAP, directed(3, clock_set_back)),
    ClusterMutant(
        "database's clock",
        trusts_the_clock_of_the_database,
        OVERLAP,
        directed(3, clock_set_forward),
    ),
    ClusterMutant(
        "no witnesses", declares_lost_without_witnesses, OVERLAP, directed(3, two_of_three_lose_the_database)
    ),
    ClusterMutant("no promises needed", goes_on_without_promises, OVERLAP, words("cut_node")),
    ClusterMutant(
        "half is enough",
        goes_on_with_half_of_the_members,
        OVERLAP,
        directed(2, one_loses_the_database),
    ),
    ClusterMutant(
        "promise after testimony",
        promises_after_it_testified,
        OVERLAP,
        directed(3, testimony_without_answer),
    ),
    ClusterMutant(
        "testimony under way",
        forgets_a_testimony_that_is_under_way,
        OVERLAP,
        directed(3, testimony_without_answer),
    ),
    ClusterMutant("broken promise", testifies_in_spite_of_a_promise, OVERLAP, directed(3, member_returns)),
    ClusterMutant(
        "forgotten promise",
        testifies_as_soon_as_it_lives_again,
        OVERLAP,
        directed(3, member_returns_as_a_new_life),
    ),
    ClusterMutant(
        "latest list only",
        knows_only_its_latest_list_of_members,
        OVERLAP,
        directed(3, list_that_is_not_stored),
    ),
    ClusterMutant("never asks", never_asks_for_promises, NOBODY_STOPS, words("stop_database", moves=1)),
    ClusterMutant("start without right", starts_without_a_right, OVERLAP, words("cut_node", "freeze_agent")),
    ClusterMutant(
        "give back first", gives_back_before_it_has_stopped, OVERLAP, words("move_worker", "drain")
    ),
    ClusterMutant(
        "place twice",
        places_what_has_a_node_already,
        REASONS,
        words("move_worker", "slow_database", "kill_node"),
    ),
    ClusterMutant(
        "place on cordoned",
        places_on_a_node_that_was_cordoned_meanwhile,
        STATES,
        directed(4, cordon_while_placing),
    ),
    ClusterMutant("ends are counted", counts_the_end_of_a_tenure, CARRIED, words("drain", "kill_node")),
    ClusterMutant(
        "late news dropped", drops_late_news_of_a_lost_node, COUNTERS, words("cut_node", "kill_node")
    ),
    ClusterMutant("same epoch", places_again_under_the_same_epoch, TOKENS, words("kill_node")),
    ClusterMutant("same token", gives_each_start_the_same_token, TOKENS, words("kill_agent")),
)


def convicted(mutant: ClusterMutant, seeds: int) -> tuple[int, Broken] | None:
    """The first seed that shows the mistake, and what it breaks."""
    for seed in range(seeds):
        broken = run_cluster(mutant.aim(seed, random.Random(seed)), seed).broken
        found = next((each for each in broken if each.rule == mutant.rule), None)
        if found is not None:
            return seed, found
    return None


def main(most: int, names: tuple[str, ...]) -> Iterator[str]:
    """Search for every mistake; one line each."""
    for mutant in CLUSTER_MUTANTS:
        if names and mutant.name not in names:
            continue
        with pytest.MonkeyPatch.context() as patch:
            mutant.plant(patch)
            began = perf_counter()
            found = convicted(mutant, most)
        took = perf_counter() - began
        where = "not convicted" if found is None else f"seed {found[0]}: {found[1].rule}: {found[1].what}"
        yield f"{mutant.name:28} {took:6.1f} s  {where}"


if __name__ == "__main__":
    for line in main(int(sys.argv[1]), tuple(sys.argv[2:])):
        click.echo(line)
