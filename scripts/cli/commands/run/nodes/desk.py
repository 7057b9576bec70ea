"""What the commands of `rekindle cluster` share: the file, the database, the name of a node."""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ....console.exits import BAD_USAGE

if TYPE_CHECKING:
    from rekindle.actors.cluster.cluster_messages import ClusterRead
    from rekindle.actors.cluster.facts.nodes import Node
    from rekindle.persistence.cluster.cluster_desk import ClusterDesk

    from ....config import Config

existing = click.Path(exists=True, dir_okay=False, path_type=Path)
file_argument = click.argument("file", type=existing, metavar="FILE")
file_option = click.option(
    "--file",
    "-f",
    "file",
    type=existing,
    required=True,
    envvar="REKINDLE_CLUSTER_FILE",
    show_envvar=True,
    metavar="FILE",
    help="A file with the [cluster] table and the database.",
)
reason_option = click.option("--reason", default="", metavar="TEXT", help="Why; shown in the status.")


def loaded(file: Path) -> Config:
    """The file of a node; its problems end the command with 2."""
    from ....config import ConfigError, load

    try:
        config = load(file)
    except ConfigError as error:
        click.echo(str(error), err=True)
        raise SystemExit(BAD_USAGE) from None
    if config.cluster is None:
        click.echo(f"{file}: has no [cluster] table: see rekindle cluster --help", err=True)
        raise SystemExit(BAD_USAGE)
    return config


@contextmanager
def opened(config: Config) -> Iterator[ClusterDesk]:
    """The database of the cluster; an error ends the command with 1."""
    from rekindle.actors.errors import StoreError
    from rekindle.persistence.cluster.cluster_desk import ClusterDesk

    assert config.cluster is not None
    try:
        desk = ClusterDesk(config.database)
        try:
            desk.claim_name(config.cluster.name)
            yield desk
        finally:
            desk.close()
    except StoreError as error:
        raise click.ClickException(str(error)) from None


def node_named(read: ClusterRead, name: str) -> Node:
    """The node of that name, or with that id; the one that lives, if several had the name."""
    found = [node for node in read.nodes if name in (node.name, node.id)]
    if not found:
        known = ", ".join(sorted({node.name for node in read.nodes})) or "none"
        raise click.ClickException(f"no node is called {name}; nodes: {known}")
    return sorted(found, key=lambda node: (not node.state.is_member, -node.lease_until_ms))[0]


def operator() -> str:
    """Who gives the order."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
