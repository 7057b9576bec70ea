"""`rekindle cluster rebalance`."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ....console.options import json_option, print_json
from ....render.text import printable
from .departures import LOOK_S, end_with
from .desk import file_option, loaded, opened, operator

if TYPE_CHECKING:
    from rekindle.actors.cluster.cluster_messages import ClusterRead
    from rekindle.actors.cluster.rules.worker_moves import Move
    from rekindle.persistence.cluster.cluster_desk import ClusterDesk


@click.command()
@file_option
@click.option("--dry-run", is_flag=True, help="Show the moves, and make none.")
@json_option
def rebalance(file: Path, dry_run: bool, as_json: bool) -> None:
    """Move workers until the nodes have about the same number, one copy of a worker at a time.

    Nothing else moves workers to a node that has joined or come back. A worker moves only if that makes
    the nodes more even, and only as many at a time as min_healthy allows. A move does not
    count against a worker.

    \b
      $ rekindle cluster rebalance --file prod.toml --dry-run
    """
    from rekindle.actors.cluster.rules.fleet import fleet
    from rekindle.actors.cluster.rules.worker_moves import all_moves

    made: list[dict[str, str]] = []
    with opened(loaded(file)) as desk:
        if dry_run:
            read = desk.read()
            made = _shown(read, all_moves(fleet(read)))
            _tell(made, as_json)
        else:
            unplaced = {}
            while round_of := _moved(desk):
                _tell(round_of, as_json)
                made += round_of
                unplaced = _settled(desk, {each["component_id"] for each in round_of})
                if unplaced:
                    break
            end_with(unplaced)
    if as_json:
        print_json({"dry_run": dry_run, "moves": made})
    elif not made:
        click.echo("nothing moves: the nodes are even")


def _moved(desk: ClusterDesk) -> list[dict[str, str]]:
    """Begin the next moves; those that another operator was quicker with are left out."""
    from rekindle.actors.cluster.cluster_messages import BeginRelease
    from rekindle.actors.cluster.rules.fleet import fleet
    from rekindle.actors.cluster.rules.worker_moves import rebalancing

    read = desk.read()
    found = fleet(read)
    begun = [
        move
        for move in rebalancing(found)
        if desk.change(
            BeginRelease(
                component_id=move.component_id,
                epoch=found.assignments[move.component_id].epoch,
                reason=f"rebalanced by {operator()}: {move.reason}",
                target=move.target,
            )
        )[0].applied
    ]
    return _shown(read, begun)


def _settled(desk: ClusterDesk, ids: set[str]) -> dict[str, str]:
    """Wait until these workers are placed; those that no node takes, and why."""
    from rekindle.actors.cluster.facts.tenures import TenurePhase
    from rekindle.actors.cluster.rules.fleet import fleet
    from rekindle.actors.cluster.rules.worker_moves import homeless

    while True:
        found = fleet(desk.read())
        left = {
            id_ for id_ in ids & found.wishes.keys() if found.assignments[id_].phase is not TenurePhase.PLACED
        }
        unplaced = homeless(found)
        if left <= unplaced.keys():
            return {id_: unplaced[id_] for id_ in left}
        time.sleep(LOOK_S)


def _shown(read: ClusterRead, moves: Iterable[Move]) -> list[dict[str, str]]:
    names = {node.id: node.name for node in read.nodes}
    return [
        {
            "component_id": move.component_id,
            "source": names[move.source],
            "target": names[move.target],
            "why": move.reason,
        }
        for move in moves
    ]


def _tell(moves: list[dict[str, str]], as_json: bool) -> None:
    for move in [] if as_json else moves:
        click.echo(printable(f"{move['component_id']}  {move['source']} -> {move['target']}  {move['why']}"))
