"""`rekindle status`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ...client import ControlClient, NoSupervisorError
from ...console.exits import FAILED
from ...console.options import client_of, duration, json_option, print_json, state_option, worker_ids
from ...console.targets import Known
from ...console.terminal import colour_wanted, columns
from ...render.status_table import Document, status_lines
from ...render.text import printable

GLANCE_S = 0.1
NAMED = 5
"""How many workers --check names."""


@click.command()
@click.argument("ids", nargs=-1, metavar="[ID]...", shell_complete=worker_ids)
@click.option("-w", "--watch", is_flag=True, help="Refresh every second until Ctrl-C.")
@click.option("--wide", is_flag=True, help="Show more columns and cut no line.")
@click.option("--check", is_flag=True, help="Exit with 1 if a worker is failed or crashed; print one line.")
@click.option(
    "--wait",
    "wait_s",
    is_flag=False,
    flag_value="30s",
    callback=duration,
    metavar="[TIME]",
    help="Wait until a supervisor answers, for 30 s or this time.",
)
@state_option
@json_option
def status(
    ids: tuple[str, ...],
    watch: bool,
    wide: bool,
    check: bool,
    wait_s: float | None,
    state: Path,
    as_json: bool,
) -> None:
    """Show workers and what happens next to each.

    \b
      $ rekindle status
      $ rekindle status tag
      $ rekindle status worker:tag:0 --json | jq '.workers[0].pid'
      $ rekindle status --watch
      $ rekindle run workers.toml & rekindle status --wait
      $ rekindle status tag --check || page-the-operator

    An ID may be the name of a group in the file, such as tag for [worker.tag] or [group.tag]: that
    means all of its workers. RESTARTS shows how much of the nearest restart limit is used: 4/5 means that one
    restart is left. NEXT shows what happens next, or why nothing does.
    """
    if watch and as_json:
        raise click.UsageError("--json prints one document and cannot be combined with --watch")
    if watch and check:
        raise click.UsageError("--check looks once and cannot be combined with --watch")
    client = client_of(state)
    if wait_s is not None:
        _await_supervisor(client, wait_s)
    if watch:
        from ...console.status_watch import watch as watch_status

        watch_status(lambda: chosen(client.get("/workers", timeout_s=5.0), ids), state, wide=wide)
        return
    report = chosen(client.get("/workers"), ids)
    down = [worker for worker in report["workers"] if worker["shown"] in ("failed", "crashed")]
    if as_json:
        print_json(report)
    elif check:
        click.echo(_verdict(down, len(report["workers"])))
    else:
        width = None if wide else columns()
        click.echo("\n".join(status_lines(report, colour=colour_wanted(), width=width, wide=wide)))
    if check and down:
        raise SystemExit(FAILED)


def _verdict(down: Sequence[Document], of: int) -> str:
    """One line on the workers that are failed or crashed."""
    total = f"{of} {'worker' if of == 1 else 'workers'}"
    if not down:
        return f"ok: {total}, none failed or crashed"
    named = ", ".join(printable(f"{each['component_id']} {each['shown']}") for each in down[:NAMED])
    more = f", and {len(down) - NAMED} more" if len(down) > NAMED else ""
    return f"{len(down)} of {total} failed or crashed: {named}{more}"


def _await_supervisor(client: ControlClient, wait_s: float) -> None:
    deadline = time.monotonic() + wait_s
    while time.monotonic() < deadline:
        try:
            client.get("/info")
            return
        except NoSupervisorError:
            time.sleep(GLANCE_S)


def chosen(report: dict[str, Any], ids: Sequence[str]) -> dict[str, Any]:
    """The report on these workers, or on all of them if none is named.

    Raises:
        UnknownWorkerError: a name matches no worker and no group.
    """
    if not ids:
        return report
    there: dict[str, Document] = {worker["component_id"]: worker for worker in report["workers"]}
    known = Known.of(report)
    found = dict.fromkeys(id_ for name in ids for id_ in known.found(name))
    groups = [group for group in report.get("groups", ()) if found.keys() & set(group["workers"])]
    return {**report, "workers": [there[id_] for id_ in found], "groups": groups}
