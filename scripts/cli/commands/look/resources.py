"""`rekindle resources`."""

from __future__ import annotations

import click

from ...client import path_of
from ...console.options import Where, client_of, json_option, print_json, supervisor_option, worker_ids
from ...console.targets import members
from ...console.terminal import columns


@click.command()
@click.argument("ids", nargs=-1, metavar="[ID]...", shell_complete=worker_ids)
@supervisor_option
@json_option
def resources(ids: tuple[str, ...], state: Where, as_json: bool) -> None:
    """Show the memory, CPU, threads and descriptors that workers use now.

    \b
      $ rekindle resources
      $ rekindle resources worker:tag:0 --json

    A worker's numbers include every process that it started. CPU is the share of one core since
    the previous sample, or since the worker started. Processes that left their worker's session
    are listed below the table: they survive the worker, and end with the supervisor.
    """
    client = client_of(state)
    ids = members(client, ids)
    for id_ in ids:
        client.get(path_of("workers", id_))  # an unknown worker is an error, a stopped one is not
    found = {
        kind: [each for each in listed if not ids or each["id"] in ids]
        for kind, listed in client.get("/resources").items()
    }
    if as_json:
        print_json(found)
        return
    from ...render.listings import resource_lines, stray_lines

    lines = [*resource_lines(found["workers"], width=columns()), *stray_lines(found["strays"])]
    click.echo("\n".join(lines))
