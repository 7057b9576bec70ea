"""`rekindle cluster attach`, and what `join` may be told beside its file."""

from __future__ import annotations

import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ....console.exits import BAD_USAGE, FAILED, say
from ....render.text import printable
from .desk import file_argument, loaded, opened

if TYPE_CHECKING:
    from rekindle.actors.gateways.settings.ray_attachment import Attachment

    from ....config import Config

LOOK_S = 0.2


@click.command()
@file_argument
@click.option("--ray", required=True, metavar="ADDRESS:PORT", help="The head of the Ray cluster.")
@click.option(
    "--timeout",
    "timeout_s",
    type=float,
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for the nodes.",
)
def attach(file: Path, ray: str, timeout_s: float) -> None:
    """Make each machine of an existing Ray cluster a node.

    Run it on one of its machines. All machines need Rekindle, installed for the Python of Ray, and the same
    file at the same path, with engine = "ray" and without join. A task of Ray on each machine starts an
    agent outside of Ray, by rekindle cluster join. This agent survives the Ray of its machine and is
    restarted if it dies; one that runs already is kept. Machines that Ray adds later get an agent within a
    minute; a machine that has left the cluster gets none. If Ray requires a token, set RAY_AUTH_MODE and
    RAY_AUTH_TOKEN_PATH.

    Exit code 1 means that some machines have not joined; their names and the reasons are printed.

    \b
      $ rekindle cluster attach prod.toml --ray 10.0.0.1:6379
      $ rekindle cluster apply prod.toml
    """
    from rekindle.actors import RekindleError

    from ....supervise.cluster.ray_admission import attach_all, check_ray

    config = on_machine(loaded(file), ray=ray)
    assert config.cluster is not None
    assert config.cluster.attached is not None
    try:
        check_ray(config.cluster, config.state_dir)
        found = attach_all(config.cluster.attached)
    except (RekindleError, OSError, subprocess.SubprocessError) as error:
        raise click.ClickException(str(error)) from None
    missing = {each.name: each.why_not for each in found if each.why_not}
    names = {each.name for each in found} - missing.keys()
    for name in sorted(names - (joined := _joined(config, names, timeout_s))):
        missing[name] = f"nothing heard for {timeout_s:g} s; see agent.log in its state directory"
    for name in sorted(joined):
        click.echo(f"{printable(name)} is a node")
    for name, why in sorted(missing.items()):
        say(f"{name} has not joined: {why}")
    if missing:
        raise SystemExit(FAILED)


def _joined(config: Config, names: set[str], timeout_s: float) -> set[str]:
    """The machines that hold a lease, once all of them do or the time is over."""
    deadline = time.monotonic() + timeout_s
    with opened(config) as desk:
        while True:
            read = desk.read()
            found = {each.name for each in read.nodes if each.lease_until_ms > read.now_ms} & names
            if found == names or time.monotonic() > deadline:
                return found
            time.sleep(LOOK_S)


def on_machine(
    config: Config,
    *,
    node: str | None = None,
    listen: str | None = None,
    state_dir: Path | None = None,
    ray: str | None = None,
) -> Config:
    """The file as this machine reads it; what cannot be ends the command with 2."""
    from ....config.tables.cluster import NODE_NAME, address_problem

    assert config.cluster is not None
    cluster = config.cluster
    if node is not None:
        if not NODE_NAME.fullmatch(node):
            _refuse(f"--node {node}: must be a name of letters, digits, dots, dashes and underscores")
        cluster = replace(cluster, node=node)
    if listen is not None:
        cluster = replace(cluster, listen=listen)
        if (why := address_problem(cluster)) is not None:
            _refuse(f"--listen {listen}: {why}")
    if ray is not None:
        if cluster.engine != "ray" or cluster.join:
            why = "names the head of another Ray (join)" if cluster.join else 'has no engine = "ray"'
            _refuse(f"{config.path}: [cluster] {why}, so --ray {ray} cannot be used")
        cluster = replace(cluster, attached=_attachment(config, ray))
    return replace(config, cluster=cluster, state_dir=state_dir or config.state_dir)


def _attachment(config: Config, ray: str) -> Attachment:
    from rekindle.actors.gateways.settings.ray_attachment import Attachment

    assert config.cluster is not None
    return Attachment(
        ray=ray,
        file=str(config.path.absolute()),
        state_dir=str(config.state_dir),
        port=int(config.cluster.listen.rpartition(":")[2]),
    )


def _refuse(text: str) -> None:
    say(text)
    raise SystemExit(BAD_USAGE)
