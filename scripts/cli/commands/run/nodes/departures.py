"""What `rekindle cluster drain` and `leave` wait for: the workers of a node have other nodes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from ....console.exits import FAILED, say

if TYPE_CHECKING:
    from rekindle.actors.cluster.facts.nodes import Node
    from rekindle.persistence.cluster.cluster_desk import ClusterDesk

LOOK_S = 0.2


def wait_for_departure(desk: ClusterDesk, node: Node, timeout_s: float | None = None) -> Mapping[str, str]:
    """Wait until every worker of a draining node is placed elsewhere, or has no place for a known reason.

    Returns:
        By worker: why no node takes it.

    Raises:
        ClickException: the node no longer drains, or the time is over.
    """
    from rekindle.actors.cluster.facts.nodes import NodeState
    from rekindle.actors.cluster.rules.fleet import fleet
    from rekindle.actors.cluster.rules.worker_moves import departure, inhabitants

    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    ids: frozenset[str] | None = None
    told: set[str] = set()
    while True:
        found = fleet(desk.read())
        ids = inhabitants(found, node) if ids is None else ids
        now = departure(found, node, ids)
        if not now.under_way:
            return now.unplaced
        for component_id in sorted(now.unplaced.keys() - told):
            told.add(component_id)
            say(f"no node takes {component_id} yet: {now.unplaced[component_id]}")
        state = found.nodes[node.id].state if node.id in found.nodes else NodeState.LEFT
        if state not in (NodeState.DRAINING, NodeState.LOST):
            raise click.ClickException(
                f"{node.name} is {state.value} now, with {_workers(now.under_way)} left"
            )
        if deadline is not None and time.monotonic() > deadline:
            raise click.ClickException(
                f"{_workers(now.under_way)} of {node.name} have no other node after {timeout_s:g} s:"
                f" {', '.join(sorted(now.under_way))}; see: rekindle cluster status"
            )
        time.sleep(LOOK_S)


def end_with(unplaced: Mapping[str, str]) -> None:
    """End the command with 1 if workers have no place."""
    for component_id, why in sorted(unplaced.items()):
        say(f"no node takes {component_id}: {why}")
    if unplaced:
        raise SystemExit(FAILED)


def _workers(ids: frozenset[str]) -> str:
    return "1 worker" if len(ids) == 1 else f"{len(ids)} workers"
