"""Commands that look and change nothing: status, explain, resources, audit."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ...client import UnknownWorkerError, path_of
from ...console.database_fallback import database_option
from ...console.options import client_of, json_option, limit_option, print_json, state_option, worker_ids
from ...console.past import past_of
from ...console.targets import meant, members, the_one
from ...console.terminal import colour_wanted, columns
from ...render.status_table import Document, status_lines
from ...render.text import printable_lines


@click.command()
@click.argument("ids", nargs=-1, metavar="[ID]...", shell_complete=worker_ids)
@click.option("-w", "--watch", is_flag=True, help="Draw it anew every second until Ctrl-C.")
@click.option("--wide", is_flag=True, help="Show more columns, and cut nothing.")
@state_option
@json_option
def status(ids: tuple[str, ...], watch: bool, wide: bool, state: Path, as_json: bool) -> None:
    """Show every worker, or these, and what happens next.

    \b
      $ rekindle status
      $ rekindle status tag
      $ rekindle status worker:tag:0 --json | jq '.workers[0].pid'
      $ rekindle status --watch

    An ID may be the name of a group, as it stands in the file: all of its workers.
    RESTARTS tells how much is used of the limit that is nearest to its end: 4/5 means that
    one more restart is left. NEXT tells what happens next, or why nothing does.
    """
    if watch and as_json:
        raise click.UsageError("--json prints one document; it cannot be watched")
    client = client_of(state)
    if watch:
        from ...console.status_watch import watch as watch_status

        watch_status(lambda: chosen(client.get("/workers", timeout_s=5.0), ids), state, wide=wide)
        return
    report = chosen(client.get("/workers"), ids)
    if as_json:
        print_json(report)
        return
    width = None if wide else columns()
    click.echo("\n".join(status_lines(report, colour=colour_wanted(), width=width, wide=wide)))


def chosen(report: dict[str, Any], ids: Sequence[str]) -> dict[str, Any]:
    """The report with only these workers; with all of them if none is named.

    Raises:
        UnknownWorkerError: one of them is not there.
    """
    if not ids:
        return report
    there: dict[str, Document] = {worker["component_id"]: worker for worker in report["workers"]}
    found: dict[str, Document] = {}
    for name in ids:
        named = meant(name, there)
        if not named:
            near = [each for each in there if name and name in each][:3]
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise UnknownWorkerError(f"no worker is called {name!r}{hint}", "unknown_worker", 404)
        found |= {id_: there[id_] for id_ in named}
    return {**report, "workers": list(found.values())}


@click.command()
@click.argument("id_", metavar="ID", shell_complete=worker_ids)
@state_option
@json_option
def explain(id_: str, state: Path, as_json: bool) -> None:
    """Say why a worker is as it is, and what can be done.

    \b
      $ rekindle explain worker:tag:0
    """
    client = client_of(state)
    answer = client.get(path_of("workers", the_one(client, id_), "explain"))
    if as_json:
        print_json(answer)
    else:
        click.echo(printable_lines(answer["text"]))


@click.command()
@click.argument("ids", nargs=-1, metavar="[ID]...", shell_complete=worker_ids)
@state_option
@json_option
def resources(ids: tuple[str, ...], state: Path, as_json: bool) -> None:
    """Show what every worker uses now, with all that it started.

    \b
      $ rekindle resources
      $ rekindle resources worker:tag:0 --json

    CPU is a share of one core since the last look, or since the worker's start. Processes that
    left their worker's session are listed apart: they outlive it, and end with the supervisor.
    """
    client = client_of(state)
    ids = members(client, ids)
    for id_ in ids:
        client.get(path_of("workers", id_))  # one that is not there is an error, one that is down is not
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


@click.command()
@limit_option("orders")
@state_option
@database_option
@json_option
def audit(limit: int, state: Path, database: str | None, as_json: bool) -> None:
    """Show who gave which order, and what came of it.

    \b
      $ rekindle audit --limit 5

    Where no supervisor runs, the database itself is asked.
    """
    with past_of(state, database) as past:
        answer = past.get(f"/audit?limit={limit}")
    if as_json:
        print_json(answer)
        return
    if not answer["entries"]:
        click.echo("No order was given yet.")
        return
    from ...render.listings import audit_lines

    click.echo("\n".join(audit_lines(answer["entries"], _now_ms(), user_name=_user_name, width=columns())))


def _user_name(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
