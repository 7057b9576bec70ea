"""`rekindle status`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ...client import UnknownWorkerError
from ...console.options import client_of, json_option, print_json, state_option, worker_ids
from ...console.targets import matching
from ...console.terminal import colour_wanted, columns
from ...render.status_table import Document, status_lines


@click.command()
@click.argument("ids", nargs=-1, metavar="[ID]...", shell_complete=worker_ids)
@click.option("-w", "--watch", is_flag=True, help="Refresh every second until Ctrl-C.")
@click.option("--wide", is_flag=True, help="Show more columns and cut no line.")
@state_option
@json_option
def status(ids: tuple[str, ...], watch: bool, wide: bool, state: Path, as_json: bool) -> None:
    """Show workers and what happens next to each.

    \b
      $ rekindle status
      $ rekindle status tag
      $ rekindle status worker:tag:0 --json | jq '.workers[0].pid'
      $ rekindle status --watch

    An ID may be the name of a group in the file, such as tag for [worker.tag]: that means all of
    its workers. RESTARTS shows how much of the nearest restart limit is used: 4/5 means that one
    restart is left. NEXT shows what happens next, or why nothing does.
    """
    if watch and as_json:
        raise click.UsageError("--json prints one document and cannot be combined with --watch")
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
    """The report on these workers, or on all of them if none is named.

    Raises:
        UnknownWorkerError: a name matches no worker and no group.
    """
    if not ids:
        return report
    there: dict[str, Document] = {worker["component_id"]: worker for worker in report["workers"]}
    found: dict[str, Document] = {}
    for name in ids:
        named = matching(name, there)
        if not named:
            near = [each for each in there if name and name in each][:3]
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise UnknownWorkerError(f"no worker is called {name!r}{hint}", "unknown_worker", 404)
        found |= {id_: there[id_] for id_ in named}
    return {**report, "workers": list(found.values())}
