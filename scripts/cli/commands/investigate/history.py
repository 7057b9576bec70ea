"""`rekindle history`."""

from __future__ import annotations

from typing import Any

import click

from ...client import OrderRefusedError, Reader, path_of
from ...console.clock import now_ms
from ...console.database_fallback import database_option
from ...console.database_reader import open_reader
from ...console.options import Where, json_option, limit_option, print_json, supervisor_option, worker_ids
from ...console.targets import the_one
from ...console.terminal import columns
from ...render.text import cut, printable


@click.command()
@click.argument("id_", metavar="ID", shell_complete=worker_ids)
@click.option(
    "--bundle",
    metavar="N",
    help="Show all evidence of the death of generation N, or of the latest death: --bundle last.",
)
@limit_option("deaths")
@supervisor_option
@database_option
@json_option
def history(
    id_: str, bundle: str | None, limit: int, state: Where, database: str | None, as_json: bool
) -> None:
    """Show a worker's deaths and what the supervisor decided after each.

    \b
      $ rekindle history worker:tag:0
      $ rekindle history worker:tag:0 --bundle last
      $ rekindle history worker:tag:0 --limit 1 --json | jq '.deaths[0].cause'

    A bundle is the evidence of one death: the cause and how certain it is, the Python traceback,
    the last lines of output, resource use, the job, the last heartbeat and the code version.
    If no supervisor is running, the database is read.
    """
    with open_reader(state, database) as reader:
        id_ = the_one(reader, id_)
        if bundle is not None:
            _show_bundle(reader, id_, bundle, as_json=as_json)
        else:
            _show_history(reader, id_, limit, as_json=as_json)


def _show_history(reader: Reader, id_: str, limit: int, *, as_json: bool) -> None:
    answer = reader.get(path_of("workers", id_, "history") + f"?limit={limit}")
    if as_json:
        print_json(answer)
        return
    source = printable(answer.get("source") or "")
    if not answer["deaths"]:
        click.echo("\n".join([f"{printable(id_)} has not died.", *([source] if source else [])]))
        return
    from ...render.crash_text import group_line
    from ...render.listings import history_lines

    width = columns()
    click.echo("\n".join(history_lines(answer["deaths"], now_ms(), width=width)))
    for group in _repeated(reader, id_):
        line = f"--bundle {group['last_generation']}: {group_line(group, now_ms())}"
        click.echo("\n" + (line if width is None else cut(line, width)))
    if source:
        click.echo(f"\n{source}")


def _repeated(reader: Reader, id_: str) -> list[dict[str, Any]]:
    """The groups of crashes that have happened again; none if the node that has the evidence is away."""
    try:
        return [group for group in _bundles(reader, id_)["groups"] if group["times"] > 1]
    except OrderRefusedError:
        return []


def _show_bundle(reader: Reader, id_: str, which: str, *, as_json: bool) -> None:
    known = _bundles(reader, id_)
    if which == "last":
        if not known["bundles"]:
            raise click.ClickException(f"{printable(id_)} has not died.")
        which = str(known["bundles"][0]["generation"])
    if not which.isdecimal():
        raise click.BadParameter("must be a generation from the GEN column of `rekindle history`, or `last`")
    found = reader.get(path_of("workers", id_, "bundles", which))
    if as_json:
        print_json(found)
        return
    from ...render.crash_text import bundle_lines

    click.echo("\n".join(bundle_lines(found, now_ms(), known["groups"])))


def _bundles(reader: Reader, id_: str) -> dict[str, Any]:
    found: dict[str, Any] = reader.get(path_of("workers", id_, "bundles") + "?limit=200")
    return found
