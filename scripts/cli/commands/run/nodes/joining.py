"""`rekindle cluster join`, `leave`."""

from __future__ import annotations

from pathlib import Path

import click

from ....render.text import printable
from .departures import end_with, wait_for_departure
from .desk import file_argument, loaded, node_named, opened, operator


@click.command()
@file_argument
@click.option("--log-json", is_flag=True, help="Write the log as JSON lines.")
@click.option("--verbose", "-v", is_flag=True, help="Log debug messages too.")
def join(file: Path, log_json: bool, verbose: bool) -> None:
    """Make this machine a node of the cluster, until SIGINT or SIGTERM.

    Start it on each machine, by a service manager that starts it again. It does not run the workers
    of the file by itself: the cluster runs what was applied. A node that is back within its lease
    goes on with its workers; a node that is away for longer loses them to others.

    The node's own supervisor answers as usual: status, explain, history and output show its workers.

    \b
      $ rekindle cluster join prod.toml
    Exit codes: those of a run.
    """
    from rekindle.actors import RekindleError
    from rekindle.actors.errors import StoreUnavailableError

    from ....supervise.log import close, set_up
    from ....supervise.runner import run as run_workers

    config = loaded(file)
    for warning in config.warnings:
        click.echo(str(warning), err=True)
    set_up(as_json=log_json, verbose=verbose)
    try:
        raise SystemExit(run_workers(config.as_node()))
    except StoreUnavailableError as error:
        raise click.ClickException(str(error)) from None
    except (RekindleError, OSError) as error:
        raise click.ClickException(str(error)) from None
    finally:
        close()


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE")
@click.option("--timeout", "timeout_s", type=float, default=600.0, show_default=True, metavar="SECONDS")
def leave(file: Path, timeout_s: float) -> None:
    """Move all workers of this node elsewhere, and take it out of the cluster.

    Run it on the machine itself, then stop its agent (rekindle shutdown). A node that has left
    joins again when its agent is started again. Exit code 1 means that no other node takes some of its
    workers; their names and the reasons are printed.

    \b
      $ rekindle cluster leave prod.toml
    """
    from rekindle.actors.cluster.cluster_messages import SetNodeState
    from rekindle.actors.cluster.facts.nodes import NodeState

    config = loaded(file)
    assert config.cluster is not None
    members = tuple(state for state in NodeState if state.is_member)
    with opened(config) as desk:
        node = node_named(desk.read(), config.cluster.node)

        def become(state: NodeState) -> bool:
            order = SetNodeState(
                node_id=node.id, state=state, reason="it leaves", by=operator(), only_from=members
            )
            return desk.change(order)[0].applied

        become(NodeState.DRAINING)
        unplaced = wait_for_departure(desk, node, timeout_s)
        if not become(NodeState.LEFT):
            raise click.ClickException(f"{node.name} does not drain any longer; see: rekindle cluster status")
    click.echo(f"{printable(node.name)} has left the cluster; stop its agent with: rekindle shutdown")
    end_with(unplaced)
