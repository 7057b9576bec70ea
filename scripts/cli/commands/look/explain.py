"""`rekindle explain`."""

from __future__ import annotations

from pathlib import Path

import click

from ...client import path_of
from ...console.options import client_of, json_option, print_json, state_option, worker_ids
from ...console.targets import the_one
from ...render.text import printable_lines


@click.command()
@click.argument("id_", metavar="ID", shell_complete=worker_ids)
@state_option
@json_option
def explain(id_: str, state: Path, as_json: bool) -> None:
    """Explain why a worker is in its state, and what you can do.

    \b
      $ rekindle explain worker:tag:0
    """
    client = client_of(state)
    answer = client.get(path_of("workers", the_one(client, id_), "explain"))
    if as_json:
        print_json(answer)
    else:
        click.echo(printable_lines(answer["text"]))
