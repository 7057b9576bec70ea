"""`rekindle cluster apply`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ....console.options import json_option, print_json
from ....render.status_table import table
from ....render.text import printable
from .desk import file_argument, loaded, opened
from .preview import PlacementPreview, preview

if TYPE_CHECKING:
    from rekindle.actors.cluster.cluster_messages import Change, ClusterRead
    from rekindle.actors.cluster.facts.wishes import Wish
    from rekindle.persistence.cluster.shared_jobs import DeclaredQueues

    from ....config import Config


@click.command()
@file_argument
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@json_option
def apply(file: Path, dry_run: bool, as_json: bool) -> None:
    """Let the cluster run exactly the workers of a file.

    New workers are placed, missing ones stopped and removed. A worker whose settings changed gets a
    new process on its node; one of which only the place changed stays where it is. A task that is done
    runs again if its settings changed. Queues and periodic jobs of the file are stored for all nodes.
    --dry-run shows what would run where, and why.

    \b
      $ rekindle cluster apply prod.toml --dry-run
    """
    from ....config.tables.wishes import wishes_of

    config, declared = loaded(file), False
    with opened(config) as desk:
        read = desk.read()
        wanted = {wish.component_id: wish for wish in wishes_of(config)}
        changes = _changes(read, wanted)
        if not dry_run:
            desk.change(*(change for found in changes.values() for change in found.values()))
            declared = desk.declare_queues(*_queues(config))
    outlook = preview(read, [change for found in changes.values() for change in found.values()])
    if as_json:
        print_json(
            {"dry_run": dry_run, **{kind: sorted(found) for kind, found in changes.items()}}
            | ({"places": [each._asdict() for each in outlook]} if dry_run else {})
        )
        return
    for kind, found in changes.items():
        for component_id in sorted(found):
            click.echo(f"{kind:<9} {printable(component_id)}")
    if dry_run:
        for line in _outlook_lines(outlook):
            click.echo(line)
    if declared:
        click.echo("changed   the queues")
    elif not any(changes.values()):
        click.echo("nothing changes")


def _queues(config: Config) -> tuple[tuple[str, ...], DeclaredQueues]:
    """The queues that its workers serve, and what the file says about queues."""
    from rekindle.actors.spec.worker_spec import served_by
    from rekindle.persistence.cluster.shared_jobs import DeclaredQueues

    limits = tuple(policy.limits for policy in config.queues)
    return served_by(config.templates), DeclaredQueues(periodic=config.periodic, limits=limits)


def _outlook_lines(outlook: Sequence[PlacementPreview]) -> list[str]:
    rows = [
        (printable(each.component_id), each.what, printable(each.node or "-"), printable(each.why))
        for each in outlook
    ]
    return ["", *table(("WORKER", "THEN", "NODE", "WHY"), rows)] if rows else []


def _changes(read: ClusterRead, wanted: Mapping[str, Wish]) -> dict[str, dict[str, Change]]:
    from rekindle.actors.cluster.cluster_messages import PutWish, WantWorker
    from rekindle.actors.cluster.facts.wishes import Wanted

    # Copies of a worker that runs everywhere belong to the coordinator.
    known = {wish.component_id: wish for wish in read.wishes if wish.pinned is None}
    changes: dict[str, dict[str, Change]] = {"added": {}, "changed": {}, "removed": {}}
    for component_id, wish in wanted.items():
        before = known.get(component_id)
        if before is None:
            changes["added"][component_id] = PutWish(wish)
        elif _content(before) != _content(wish):
            changes["changed"][component_id] = PutWish(wish)
    for component_id in known.keys() - wanted.keys():
        if known[component_id].wanted is not Wanted.GONE:
            changes["removed"][component_id] = WantWorker(component_id, Wanted.GONE)
    return changes


def _content(wish: Wish) -> tuple[object, ...]:
    from rekindle.actors.cluster.facts.wishes import Wanted

    wanted = Wanted.RUN if wish.wanted is Wanted.DONE else wish.wanted
    order = wish.once, wish.unit, wish.beside, dict(wish.after)
    return wish.spec, wish.place, wish.group, wish.min_healthy, wanted, order
