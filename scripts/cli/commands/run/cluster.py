"""`rekindle cluster`."""

from __future__ import annotations

import click

from ..help import Subcommands
from .nodes.apply import apply
from .nodes.attach import attach
from .nodes.balance import rebalance
from .nodes.cluster_status import status
from .nodes.explanation import explain
from .nodes.membership import join, leave, up
from .nodes.node_orders import cordon, drain, forget, move, uncordon
from .nodes.trial import try_


@click.group(cls=Subcommands)
def cluster() -> None:
    """Run workers on several machines that share a PostgreSQL database.

    Each machine has a file with a [cluster] table, and runs its workers by itself: a restart needs
    neither the database nor another machine. The database says which worker runs where. If a
    machine is lost, its workers start on others, with the restarts that were counted so far.

    \b
      $ rekindle cluster try                   three nodes on this machine, one is killed
      $ rekindle cluster join prod.toml        on each machine, under its service manager
      $ rekindle cluster apply prod.toml       once: what should run
      $ rekindle cluster status --file prod.toml
    """


for _command in (
    up,
    join,
    attach,
    leave,
    apply,
    status,
    explain,
    cordon,
    uncordon,
    drain,
    move,
    rebalance,
    forget,
):
    cluster.add_command(_command)
cluster.add_command(try_, "try")
