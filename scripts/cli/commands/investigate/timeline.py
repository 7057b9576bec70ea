"""`rekindle timeline`."""

from __future__ import annotations

import click

from ...client import path_of
from ...console.clock import now_ms
from ...console.database_fallback import database_option
from ...console.database_reader import open_reader
from ...console.options import (
    MOST_LISTED,
    Where,
    duration,
    json_option,
    limit_since_option,
    print_json,
    supervisor_option,
    worker_ids,
)
from ...console.targets import the_one
from ...render.text import printable

FEW = 50


@click.command()
@click.argument("id_", metavar="ID", shell_complete=worker_ids)
@click.option(
    "--since",
    callback=duration,
    metavar="TIME",
    help="Only entries of the last 90s, 30m, 2h or 1d.",
)
@limit_since_option("entries", FEW)
@supervisor_option
@database_option
@json_option
def timeline(
    id_: str, since: float | None, limit: int | None, state: Where, database: str | None, as_json: bool
) -> None:
    """Show what happened to a worker, the latest entry last.

    \b
      $ rekindle timeline worker:tag:0
      $ rekindle timeline worker:tag:0 --since 1h
      $ rekindle timeline worker:tag:0 --json | jq .ever.mean_between_ms

    The timeline has starts, health changes, jobs, resource use, stops, pauses, deaths, and every
    decision with the counters behind it: "retry in 16 s: 5th in a row; window 4 of 5; lifetime
    11 of 20". It ends with the mean time between failures: the total uptime of all generations
    that died and of the running one, divided by the number of deaths.
    With --json the latest entry comes first. If no supervisor is running, the database is read.
    """
    query = f"?limit={limit or (FEW if since is None else MOST_LISTED)}"
    if since is not None:
        query += f"&since={max(0, now_ms() - round(since * 1000))}"
    with open_reader(state, database) as reader:
        id_ = the_one(reader, id_)
        answer = reader.get(path_of("workers", id_, "timeline") + query)
    if as_json:
        print_json(answer)
        return
    from ...render.timeline_lines import failure_line, timeline_lines

    lines = list(timeline_lines(answer))
    if not lines:
        when = "" if since is None else " in that time"
        lines = [f"There are no entries for {printable(id_)}{when}."]
    source = [printable(answer["source"])] if answer.get("source") else []
    click.echo("\n".join([*lines, "", failure_line(answer), *source]))
