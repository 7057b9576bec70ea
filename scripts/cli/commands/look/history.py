"""Commands about deaths: history, report."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from ...client import Reader, path_of
from ...console.database_fallback import database_option
from ...console.options import client_of, json_option, limit_option, print_json, state_option, worker_ids
from ...console.past import past_of
from ...console.targets import the_one
from ...console.terminal import columns
from ...render.text import cut, printable


@click.command()
@click.argument("id_", metavar="ID", shell_complete=worker_ids)
@click.option(
    "--bundle",
    metavar="N",
    help="Show everything that is known of the death of generation N, or of the last one: --bundle last.",
)
@limit_option("deaths")
@state_option
@database_option
@json_option
def history(
    id_: str, bundle: str | None, limit: int, state: Path, database: str | None, as_json: bool
) -> None:
    """Show a worker's deaths and the decisions on them.

    \b
      $ rekindle history worker:tag:0
      $ rekindle history worker:tag:0 --bundle last
      $ rekindle history worker:tag:0 --limit 1 --json | jq '.deaths[0].cause'

    A bundle tells what it died of and how sure that is, the Python traceback, the last lines
    that it wrote, what it used, its job, its last heartbeat, and which code it ran.
    Where no supervisor runs, the database itself is asked.
    """
    with past_of(state, database) as past:
        id_ = the_one(past, id_)
        if bundle is not None:
            _show_bundle(past, id_, bundle, as_json=as_json)
        else:
            _show_history(past, id_, limit, as_json=as_json)


def _show_history(past: Reader, id_: str, limit: int, *, as_json: bool) -> None:
    answer = past.get(path_of("workers", id_, "history") + f"?limit={limit}")
    if as_json:
        print_json(answer)
        return
    if not answer["deaths"]:
        click.echo(f"{printable(id_)} has not died.")
        return
    from ...render.crash_text import group_line
    from ...render.listings import history_lines

    width = columns()
    click.echo("\n".join(history_lines(answer["deaths"], _now_ms(), width=width)))
    again = [group for group in _bundles(past, id_)["groups"] if group["times"] > 1]
    for group in again:
        line = f"--bundle {group['last_generation']}: {group_line(group, _now_ms())}"
        click.echo("\n" + (line if width is None else cut(line, width)))


def _show_bundle(past: Reader, id_: str, which: str, *, as_json: bool) -> None:
    known = _bundles(past, id_)
    if which == "last":
        if not known["bundles"]:
            raise click.ClickException(f"{printable(id_)} has not died.")
        which = str(known["bundles"][0]["generation"])
    if not which.isdecimal():
        raise click.BadParameter("is a generation, as `rekindle history` tells it, or `last`")
    found = past.get(path_of("workers", id_, "bundles", which))
    if as_json:
        print_json(found)
        return
    from ...render.crash_text import bundle_lines

    click.echo("\n".join(bundle_lines(found, _now_ms(), known["groups"])))


def _bundles(past: Reader, id_: str) -> dict[str, Any]:
    found: dict[str, Any] = past.get(path_of("workers", id_, "bundles") + "?limit=200")
    return found


@click.command()
@click.argument("id_", metavar="ID", shell_complete=worker_ids)
@click.option(
    "-o",
    "--output",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write it to this file instead of standard output; only its owner may read it.",
)
@state_option
@json_option
def report(id_: str, file: Path | None, state: Path, as_json: bool) -> None:
    """Write everything about a worker for a bug report, as Markdown.

    \b
      $ rekindle report worker:tag:0 -o report.md

    Its state, its crashes and how often each came, the evidence of the last ones, its deaths
    and how it is declared. Values of environment variables are left out, and what looks like a
    secret is masked; still, look it through before you pass it on: it holds what the worker wrote.
    """
    client = client_of(state)
    answer = client.get(path_of("workers", the_one(client, id_), "report"))
    if as_json:
        import json

        text = json.dumps(answer, indent=2)
    else:
        from ...render.crash_text import report_lines

        text = "\n".join(report_lines(answer))
    if file is None:
        click.echo(text)
    else:
        _write(file, text + "\n")


def _write(file: Path, text: str) -> None:
    import os

    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "w", encoding="utf-8", errors="replace") as opened:
            os.fchmod(descriptor, 0o600)  # a file that was there keeps its mode otherwise
            opened.write(text)
    except OSError as error:
        raise click.ClickException(f"{file} cannot be written: {error.strerror}") from None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
