"""`rekindle cluster cordon`, `uncordon`, `drain`, `move`, `forget`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ....console.exits import NO_SUCH_WORKER, say
from ....console.options import duration
from ....render.text import printable
from .departures import end_with, wait_for_departure
from .desk import file_option, loaded, node_named, opened, operator, reason_option

if TYPE_CHECKING:
    from rekindle.actors.cluster.facts.nodes import NodeState

_node = click.argument("name", metavar="NODE")


@click.command()
@_node
@file_option
@reason_option
def cordon(name: str, file: Path, reason: str) -> None:
    """Place no further workers on a node; those that it has stay.

    \b
      $ rekindle cluster cordon k2 --file prod.toml --reason "bad disk"
    """
    from rekindle.actors.cluster.facts.nodes import NodeState

    _set(file, name, NodeState.CORDONED, reason)
    click.echo(f"{printable(name)} gets no further workers; undo it with: rekindle cluster uncordon {name}")


@click.command()
@_node
@file_option
def uncordon(name: str, file: Path) -> None:
    """Place workers on a node again, and end a drain or a suspicion of it.

    If the cluster suspects or has convicted the node because workers die there, you overrule it: it is not
    suspected again for an hour.

    \b
      $ rekindle cluster uncordon k2 --file prod.toml
    """
    from rekindle.actors.cluster.facts.nodes import NodeState

    _set(file, name, NodeState.UP, "")
    click.echo(f"{printable(name)} takes workers again")


@click.command()
@_node
@file_option
@reason_option
@click.option(
    "--wait/--no-wait", default=True, help="Wait until its workers have other nodes.  [default: wait]"
)
@click.option(
    "--deadline",
    "deadline_s",
    callback=duration,
    metavar="TIME",
    help="After this time, kill what is left: 90s, 30m, 2h, 1d.",
)
def drain(name: str, file: Path, reason: str, wait: bool, deadline_s: float | None) -> None:
    """Move all workers of a node elsewhere, as many at a time as min_healthy allows.

    Each worker is stopped by its own stop settings, then starts on another node. This does not count
    against it. The node gets no workers until you uncordon it. Workers that are left after --deadline
    are killed and start elsewhere at once, regardless of min_healthy.

    Exit code 1 means that no other node takes some of them; their names and the reasons are printed.

    \b
      $ rekindle cluster drain k2 --file prod.toml --reason "new kernel" --deadline 10m
    """
    from rekindle.actors.cluster.facts.nodes import NodeState

    _set(file, name, NodeState.DRAINING, reason, deadline_s)
    if not wait:
        click.echo(f"{printable(name)} is draining; see: rekindle cluster status")
        return
    with opened(loaded(file)) as desk:
        unplaced = wait_for_departure(desk, node_named(desk.read(), name))
    click.echo(f"{printable(name)} has no worker left")
    end_with(unplaced)


@click.command()
@click.argument("component_id", metavar="ID")
@_node
@file_option
def move(component_id: str, name: str, file: Path) -> None:
    """Move one worker to a node: it stops where it is, then starts there.

    If the node cannot take it when it has stopped, it starts on another one.

    \b
      $ rekindle cluster move worker:web:0 k1 --file prod.toml
    """
    from rekindle.actors.cluster.cluster_messages import BeginRelease

    with opened(loaded(file)) as desk:
        read = desk.read()
        target = node_named(read, name)
        found = next((each for each in read.assignments if each.component_id == component_id), None)
        if found is None:
            say(f"the cluster has no worker {component_id}")
            raise SystemExit(NO_SUCH_WORKER)
        if found.node_id == target.id:
            click.echo(f"{printable(component_id)} runs there already")
            return
        if not target.state.takes_workers:
            raise click.ClickException(f"{name} takes no workers: it is {target.state.value}")
        release = BeginRelease(
            component_id=component_id,
            epoch=found.epoch,
            reason=f"moved to {target.name} by {operator()}",
            target=target.id,
        )
        if found.node_id is None or not desk.change(release)[0].applied:
            raise click.ClickException(f"{component_id} is {found.phase.value} now; try again")
    click.echo(f"{printable(component_id)} moves to {printable(name)}")


@click.command()
@_node
@file_option
def forget(name: str, file: Path) -> None:
    """Remove a node that will not return, and release its workers.

    The lease of the node must be over. A node that was alone when it was lost keeps its workers until it
    returns or is forgotten: be sure that the machine is off.

    \b
      $ rekindle cluster forget k3 --file prod.toml
    """
    with opened(loaded(file)) as desk:
        read = desk.read()
        node = node_named(read, name)
        if not desk.forget(node.id, operator()):
            raise click.ClickException(f"{name} holds its lease: stop its agent first")
    click.echo(f"{printable(name)} is forgotten")


def _set(file: Path, name: str, state: NodeState, reason: str, deadline_s: float | None = None) -> None:
    from rekindle.actors.cluster.cluster_messages import SetNodeState
    from rekindle.actors.cluster.facts.cases import Overrule
    from rekindle.actors.cluster.facts.nodes import NodeState

    members = tuple(each for each in NodeState if each.is_member)
    with opened(loaded(file)) as desk:
        node = node_named(desk.read(), name)
        order = SetNodeState(
            node_id=node.id,
            state=state,
            reason=reason,
            by=operator() if reason else "",
            only_from=members,
            deadline_ms=None if deadline_s is None else round(deadline_s * 1000),
        )
        overrule = (Overrule(node_id=node.id, by=operator()),) if state is NodeState.UP else ()
        if not desk.change(order, *overrule)[0].applied:
            raise click.ClickException(f"{name} is {node.state.value}: it must join first")
