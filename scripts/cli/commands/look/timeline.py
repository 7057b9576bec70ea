"""`rekindle timeline`: the flight recorder of one worker."""

from __future__ import annotations

import time
from pathlib import Path

import click

from ...client import path_of
from ...console.database_fallback import database_option
from ...console.options import duration, json_option, limit_option, print_json, state_option, worker_ids
from ...console.past import past_of
from ...console.targets import the_one
from ...render.text import printable


@click.command()
@click.argument("id_", metavar="ID", shell_complete=worker_ids)
@click.option(
    "--since",
    callback=duration,
    metavar="TIME",
    help="Only what happened in the last 90s, 30m, 2h or 1d.",
)
@limit_option("lines", default=50)
@state_option
@database_option
@json_option
def timeline(
    id_: str, since: float | None, limit: int, state: Path, database: str | None, as_json: bool
) -> None:
    """Show what happened to a worker, line by line, the newest last.

    \b
      $ rekindle timeline worker:tag:0
      $ rekindle timeline worker:tag:0 --since 1h
      $ rekindle timeline worker:tag:0 --json | jq .ever.mean_between_ms

    Starts, heartbeats lost and found, jobs, what it used, stops, pauses, deaths, and every
    decision with its reason: "retry in 16 s: 5th in a row; window 4 of 5; lifetime 11 of 20".
    At the end the mean time between failures: how long the lives lasted that ended in a death,
    and the present one, by how often it died.
    With --json the newest entry comes first. Where no supervisor runs, the database itself is asked.
    """
    query = f"?limit={limit}"
    if since is not None:
        query += f"&since={max(0, time.time_ns() // 1_000_000 - round(since * 1000))}"
    with past_of(state, database) as past:
        id_ = the_one(past, id_)
        answer = past.get(path_of("workers", id_, "timeline") + query)
    if as_json:
        print_json(answer)
        return
    from ...render.timeline_lines import failure_line, timeline_lines

    lines = list(timeline_lines(answer))
    if not lines:
        when = "" if since is None else " in that time"
        lines = [f"Nothing happened to {printable(id_)}{when}."]
    click.echo("\n".join([*lines, "", failure_line(answer)]))
