"""`rekindle status`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ...client import ControlClient, ControlError, NoSupervisorError, OrderRefusedError
from ...console.clock import now_ms
from ...console.exits import FAILED
from ...console.options import (
    Where,
    client_of,
    duration,
    json_option,
    print_json,
    supervisor_option,
    worker_ids,
)
from ...console.targets import Known
from ...console.terminal import colour_wanted, columns
from ...render.job_progress import JOBS_S, RUNNING_JOBS, hold_jobs, with_jobs
from ...render.status_table import Document, status_lines
from ...render.text import printable
from ...render.worker_order import GIVEN, ORDERS, arranged
from ...state_files import DATABASE_NAME

GLANCE_S = 0.1
MEASURED = ("cpu", "memory")
NAMED = 5
"""How many workers --check names."""


@click.command()
@click.argument("ids", nargs=-1, metavar="[ID]...", shell_complete=worker_ids)
@click.option("-w", "--watch", is_flag=True, help="Refresh every second until Ctrl-C.")
@click.option("--wide", is_flag=True, help="Show CPU, memory, the command and more; cut no line.")
@click.option(
    "--sort",
    type=click.Choice(tuple(ORDERS)),
    help="The order of the workers, by default by name, or as you name them; with trouble the failed and "
    "crashed ones come first.",
)
@click.option(
    "--filter",
    "words",
    multiple=True,
    metavar="WORD",
    help="Only workers whose status begins with this word, or that have it in the id.",
)
@click.option("--node", metavar="NAME", help="In a cluster: only the workers of this node.")
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
@supervisor_option
@json_option
def status(
    ids: tuple[str, ...],
    watch: bool,
    wide: bool,
    sort: str | None,
    words: tuple[str, ...],
    node: str | None,
    check: bool,
    wait_s: float | None,
    state: Where,
    as_json: bool,
) -> None:
    """Show workers and what happens next to each.

    \b
      $ rekindle status
      $ rekindle status tag
      $ rekindle status worker:tag:0 --json | jq '.workers[0].pid'
      $ rekindle status --sort memory --wide
      $ rekindle status --filter failed --filter crashed
      $ rekindle status --watch
      $ rekindle run workers.toml & rekindle status --wait
      $ rekindle status tag --check || page-the-operator
      $ rekindle status --url https://rekindle.example.org:8377 --token-file viewer.token

    An ID may be the name of a group in the file, such as tag for [worker.tag] or [group.tag]: that
    means all of its workers. RESTARTS shows how much of the nearest restart limit is used: 4/5 means that one
    restart is left. NEXT shows what happens next, or why nothing does, and how far a job is that shows it.

    On a node of a cluster, the workers of all nodes are shown: those of the node itself as they are now,
    the others as their nodes last said, which the line of the nodes dates. --node k2 narrows it to one.

    If no supervisor is running, the last known state of the workers is read from the database in
    the state directory, and the exit code is 3.
    """
    if watch and as_json:
        raise click.UsageError("--json prints one document and cannot be combined with --watch")
    if watch and check:
        raise click.UsageError("--check looks once and cannot be combined with --watch")
    client = client_of(state)
    if wait_s is not None:
        _await_supervisor(client, wait_s)

    def look() -> dict[str, Any]:
        report = client.get("/workers", timeout_s=5.0 if watch else None)
        if wide or sort in MEASURED:
            report = measured(client, report)
        if not (as_json or check):
            report = _with_progress(client, report)
        return arranged(of_node(chosen(report, ids), node), sort or (GIVEN if ids else "name"), words)

    if watch:
        from ...console.status_watch import watch as watch_status

        watch_status(look, state, wide=wide)
        return
    try:
        report = {**look(), "paused_queues": _paused_queues(client)}
    except NoSupervisorError:
        if not isinstance(state, Path):
            raise
        _show_last_known(state, ids, words, as_json=as_json)
        raise
    down = [worker for worker in report["workers"] if worker["shown"] in ("failed", "crashed")]
    if as_json:
        print_json(report)
    elif check:
        click.echo(_verdict(down, len(report["workers"])))
    else:
        width = None if wide else columns()
        if (words or node) and not report["workers"]:
            click.echo("No matching workers.")
            return
        click.echo("\n".join(status_lines(report, colour=colour_wanted(), width=width, wide=wide)))
    if check and down:
        raise SystemExit(FAILED)


def _show_last_known(state: Path, ids: Sequence[str], words: Sequence[str], *, as_json: bool) -> None:
    """Print what the former supervisor persisted, if there is its database."""
    where = state / DATABASE_NAME
    if not where.exists():
        return
    from ...console.database_reader import open_database
    from ...render.listings import last_known_lines

    try:
        with open_database(state, str(where)) as reader:
            report = arranged(chosen(reader.last_known(), ids), "name", words)
    except OrderRefusedError:
        return  # it is damaged, or belongs to another user; the missing supervisor is what matters
    if as_json:
        print_json(report)
    elif report["workers"]:
        click.echo("\n".join(last_known_lines(report["workers"], now_ms(), width=columns())))


def _paused_queues(client: ControlClient) -> list[Document]:
    try:
        found: list[Document] = client.get("/queues/pauses")["pauses"]
    except ControlError:  # the store does not answer, or the supervisor is older than this command
        return []
    now = now_ms()
    return [{**pause, "ends_in_ms": _left_ms(pause["until_wall_ms"], now)} for pause in found]


def _left_ms(until_wall_ms: int | None, now_wall_ms: int) -> int | None:
    return None if until_wall_ms is None else max(0, until_wall_ms - now_wall_ms)


def _with_progress(client: ControlClient, report: dict[str, Any]) -> dict[str, Any]:
    """The report with how far the jobs are that workers execute; without it if the store does not answer."""
    if not hold_jobs(report["workers"]):
        return report
    try:
        return {**report, "workers": with_jobs(report["workers"], client.get(RUNNING_JOBS, timeout_s=JOBS_S))}
    except ControlError:
        return report


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


def measured(client: ControlClient, report: dict[str, Any]) -> dict[str, Any]:
    """The report with what each worker uses and the command that it runs."""
    used = {each["id"]: each for each in client.get("/resources")["workers"]}
    runs = {each["id"]: each for each in client.get("/declarations")["workers"]}
    more = [
        {
            **worker,
            "usage": used.get(worker["component_id"]),
            "command": _command(runs.get(worker["component_id"])),
        }
        for worker in report["workers"]
    ]
    return {**report, "workers": more}


def _command(declared: Document | None) -> str | None:
    """The command of a worker as one would type it, or its Python function."""
    if declared is None:
        return None
    from shlex import join

    return declared["python"] if "python" in declared else join(map(str, declared["command"]))


def of_node(report: dict[str, Any], name: str | None) -> dict[str, Any]:
    """The report on the workers of one node.

    Raises:
        OrderRefusedError: there is no such node.
    """
    if name is None:
        return report
    known = [node["name"] for node in report.get("nodes", ())]
    if name not in known:
        nodes = f"nodes: {', '.join(known)}" if known else "this supervisor is in no cluster"
        raise OrderRefusedError(f"no node is called {name!r}; {nodes}")
    return {**report, "workers": [each for each in report["workers"] if each["node"] == name]}


def chosen(report: dict[str, Any], ids: Sequence[str]) -> dict[str, Any]:
    """The report on these workers, or on all of them if none is named.

    Raises:
        UnknownTargetError: a name matches no worker and no group.
    """
    if not ids:
        return report
    there: dict[str, Document] = {worker["component_id"]: worker for worker in report["workers"]}
    known = Known.of(report)
    found = dict.fromkeys(id_ for name in ids for id_ in known.found(name))
    groups = [group for group in report.get("groups", ()) if found.keys() & set(group["workers"])]
    return {**report, "workers": [there[id_] for id_ in found], "groups": groups}
