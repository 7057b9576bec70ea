"""`rekindle cluster up`, `join`, `leave`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ....console.exits import BAD_USAGE, say
from ....render.text import printable
from .attach import on_machine
from .departures import end_with, wait_for_departure
from .desk import file_argument, loaded, node_named, opened, operator

if TYPE_CHECKING:
    from ....config import Config


_log_json = click.option("--log-json", is_flag=True, help="Write the log as JSON lines.")
_verbose = click.option("--verbose", "-v", is_flag=True, help="Log debug messages too.")


@click.command()
@file_argument
@click.option("--node", metavar="NAME", help="The name of this machine, instead of the one in the file.")
@click.option("--listen", metavar="ADDRESS:PORT", help="Where it listens, instead of the one in the file.")
@click.option(
    "--state",
    "state_dir",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Its state directory, instead of the one in the file.",
)
@click.option("--ray", metavar="ADDRESS:PORT", help="The head of a Ray that runs on this machine already.")
@_log_json
@_verbose
def join(
    file: Path,
    node: str | None,
    listen: str | None,
    state_dir: Path | None,
    ray: str | None,
    log_json: bool,
    verbose: bool,
) -> None:
    """Make this machine a node of the cluster, until SIGINT or SIGTERM.

    Start it on each machine, under a service manager that restarts it. It does not start the workers
    of this file: the cluster runs those of the last rekindle cluster apply. A node that is back within
    its lease keeps its workers; if it is away for longer, they start on other nodes.

    With engine = "ray" it also runs the Ray of this machine, which joins the head that the file names;
    with --ray it uses the one that runs there (see rekindle cluster attach).

    The node's own supervisor answers as usual: status, explain, history and output show its workers.

    \b
      $ rekindle cluster join prod.toml
    Exit codes: those of a run.
    """
    config = on_machine(loaded(file), node=node, listen=listen, state_dir=state_dir, ray=ray)
    assert config.cluster is not None
    if config.cluster.engine == "ray" and not (config.cluster.join or config.cluster.attached):
        say(
            f"{file}: [cluster] has no join: set it to the address of Ray's head, "
            f"or start the first machine with: rekindle cluster up {file}"
        )
        raise SystemExit(BAD_USAGE)
    _run(config, log_json, verbose)


@click.command()
@file_argument
@_log_json
@_verbose
def up(file: Path, log_json: bool, verbose: bool) -> None:
    """Make this machine the first node of a cluster with engine = "ray", until SIGINT or SIGTERM.

    It runs the head of Ray as well, and starts it again when it dies; workers do not notice. The other
    machines have join = ["ADDRESS:6390"] in their files, with the address of this one, and join.

    \b
      $ rekindle cluster up prod.toml
    Exit codes: those of a run.
    """
    config = loaded(file)
    assert config.cluster is not None
    if config.cluster.engine != "ray" or config.cluster.join:
        why = "names the head of another machine" if config.cluster.join else 'has no engine = "ray"'
        say(f"{file}: [cluster] {why}, so run: rekindle cluster join {file}")
        raise SystemExit(BAD_USAGE)
    _run(config, log_json, verbose)


def _run(config: Config, log_json: bool, verbose: bool) -> None:
    from rekindle.actors import RekindleError
    from rekindle.actors.errors import StoreUnavailableError

    from ....supervise.cluster.ray_admission import check_ray
    from ....supervise.log import close, set_up
    from ....supervise.runner import run as run_workers

    assert config.cluster is not None
    for warning in config.warnings:
        click.echo(str(warning), err=True)
    set_up(as_json=log_json, verbose=verbose)
    try:
        check_ray(config.cluster, config.state_dir)
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
            raise click.ClickException(f"{node.name} no longer drains; see: rekindle cluster status")
    click.echo(f"{printable(node.name)} has left the cluster; stop its agent with: rekindle shutdown")
    end_with(unplaced)
