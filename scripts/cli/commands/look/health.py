"""`rekindle health`."""

from __future__ import annotations

from urllib.parse import urlencode

import click

from ...console.options import (
    Where,
    client_of,
    duration,
    json_option,
    print_json,
    supervisor_option,
    worker_ids,
)
from ...render.text import printable


@click.command()
@click.argument("id_", required=False, metavar="[ID]", shell_complete=worker_ids)
@click.option(
    "--max-age",
    "max_age_s",
    callback=duration,
    metavar="TIME",
    help="How old the last heartbeat may be, such as 30s; for workers that send heartbeats.",
)
@click.option("--ready", is_flag=True, help="Exit with code 1 also while a worker is starting.")
@supervisor_option
@json_option
def health(id_: str | None, max_age_s: float | None, ready: bool, state: Where, as_json: bool) -> None:
    """Exit with code 0 if all workers are well, and with 1 if not.

    \b
      $ rekindle health
      $ rekindle health worker:tag:0 --max-age 30s
      HEALTHCHECK CMD ["rekindle", "health", "--ready"]

    A worker is not well if it crashed, was given up, is unhealthy or recovers. Workers that you stopped
    or paused, and workers that finished, are well. Without an ID, a store that cannot be written counts
    as a problem, too. The exit code is 3 if no supervisor runs.
    """
    query = {name: value for name, value in (("worker", id_), ("max_age_s", max_age_s)) if value is not None}
    found = client_of(state).get(f"/health?{urlencode(query)}" if query else "/health")
    is_well = found["ready"] if ready else found["healthy"]
    if as_json:
        print_json(found)
    elif found["problems"]:
        click.echo("\n".join(printable(problem) for problem in found["problems"]))
    elif is_well:
        click.echo(f"well: {found['workers']} {'worker' if found['workers'] == 1 else 'workers'}")
    else:
        click.echo("a worker is starting")
    if not is_well:
        raise click.exceptions.Exit(1)
