"""`rekindle runs`."""

from __future__ import annotations

import click

from ...client import path_of
from ...console.clock import now_ms
from ...console.database_fallback import database_option
from ...console.database_reader import open_reader
from ...console.options import Where, json_option, limit_option, print_json, supervisor_option, worker_ids
from ...console.targets import the_one
from ...console.terminal import colour_wanted, columns
from ...render.text import printable


@click.command()
@click.argument("id_", metavar="ID", shell_complete=worker_ids)
@limit_option("runs")
@supervisor_option
@database_option
@json_option
def runs(id_: str, limit: int, state: Where, database: str | None, as_json: bool) -> None:
    """Show the runs of a scheduled worker, including missed ones and why.

    \b
      $ rekindle runs backup
      $ rekindle runs backup --limit 1 --json | jq '.runs[0].state'

    The newest run is first. A run is waiting, running, succeeded, failed, stopped (by an order),
    lost (with its supervisor), skipped (another one was running) or missed (the supervisor was
    down, the worker paused or stopped). Missed runs in a row are one line with their number.
    If no supervisor is running, the database is read.
    """
    with open_reader(state, database) as reader:
        id_ = the_one(reader, id_)
        answer = reader.get(path_of("workers", id_, "runs") + f"?limit={limit}")
    if as_json:
        print_json(answer)
        return
    if not answer["runs"]:
        click.echo(f"{printable(id_)} has had no runs.")
        return
    from ...render.run_lines import RUN_HEADING, run_rows
    from ...render.status_table import table

    rows, codes = run_rows(answer["runs"], now_ms())
    painted = codes if colour_wanted() else None
    click.echo("\n".join(table(RUN_HEADING, rows, width=columns(), colours=painted)))
