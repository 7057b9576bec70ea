"""`rekindle cluster explain`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ....console.exits import NO_SUCH_WORKER, say
from ....render.text import printable
from .desk import file_option, loaded, opened

if TYPE_CHECKING:
    from rekindle.actors.cluster.facts.node_lives import NodeLife
    from rekindle.actors.cluster.facts.tenures import Assignment, Tenure


@click.command()
@click.argument("component_id", metavar="ID")
@file_option
def explain(component_id: str, file: Path) -> None:
    """Explain where a worker runs, where it was, and what caused its deaths.

    It reads the database. A death counts against the worker, unless its node was lost, had no lease, or was
    convicted for it: then it is refunded. For its current state, run rekindle explain on its node.

    \b
      $ rekindle cluster explain worker:web:0 --file prod.toml
    """
    with opened(loaded(file)) as desk:
        read = desk.read()
        found = next((each for each in read.assignments if each.component_id == component_id), None)
        if found is None:
            say(f"the cluster has no worker {component_id}")
            raise SystemExit(NO_SUCH_WORKER)
        names = {node.id: node.name for node in read.nodes}
        lines = [*_lines(found, desk.tenures(component_id), desk.lives(component_id), names)]
    for line in lines:
        click.echo(printable(line))


def _lines(
    assignment: Assignment, tenures: tuple[Tenure, ...], lives: tuple[NodeLife, ...], names: dict[str, str]
) -> Iterator[str]:
    from rekindle.actors.cluster.rules.suspects.attribution import sentence
    from rekindle.actors.cluster.rules.tenure_counters import carried, refunded

    id_, known = assignment.component_id, carried(tenures)
    if assignment.node_id is None:
        yield f"{id_} is on no node: {assignment.reason}."
    else:
        yield f"{id_} is {assignment.phase.value} on {names.get(assignment.node_id)}: {assignment.reason}."
    if known.failed_at_wall_ms is not None:
        yield f"It has failed: {known.failure_reason}."
    words = "1 restart counts" if known.restart_count == 1 else f"{known.restart_count} restarts count"
    yield f"{words} against it; {refunded(tenures)} were refunded."
    if (blamed := sentence(lives, names)) is not None:
        yield f"{blamed}."
    for life in [life for life in lives if life.died][-SHOWN:]:
        whose = "its own" if life.fault is None or life.fault.counts else f"the {life.fault.value}'s"
        yield f"  {_when(life)} on {names.get(life.node_id, life.node_id)}: {life.cause}, {whose} fault"


SHOWN = 10


def _when(life: NodeLife) -> str:
    from datetime import datetime

    return datetime.fromtimestamp((life.ended_ms or 0) / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")
