"""`rekindle explain`."""

from __future__ import annotations

import click

from ...client import ControlClient, path_of
from ...console.options import Where, client_of, json_option, print_json, supervisor_option, worker_ids
from ...console.targets import the_one
from ...render.status_table import Document, group_line
from ...render.text import printable, printable_lines


@click.command()
@click.argument("id_", metavar="ID", shell_complete=worker_ids)
@supervisor_option
@json_option
def explain(id_: str, state: Where, as_json: bool) -> None:
    """Explain why a worker is in its state, and what you can do.

    \b
      $ rekindle explain worker:tag:0
      $ rekindle explain back              # [group.back]: its budget, and each member in a line
    """
    client = client_of(state)
    groups = {group["name"]: group for group in client.get("/workers").get("groups", ())}
    if id_ in groups:
        _explain_group(client, groups[id_], as_json=as_json)
        return
    answer = client.get(path_of("workers", the_one(client, id_), "explain"))
    if as_json:
        print_json(answer)
    else:
        click.echo(printable_lines(answer["text"]))


def _explain_group(client: ControlClient, group: Document, *, as_json: bool) -> None:
    answers = [client.get(path_of("workers", id_, "explain")) for id_ in group["workers"]]
    if as_json:
        print_json({"group": group, "workers": answers})
        return
    click.echo(f"{group_line(group)}.")
    for answer in answers:
        click.echo(f"  {printable(answer['text'].splitlines()[0])}")
