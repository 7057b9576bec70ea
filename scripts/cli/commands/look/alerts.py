"""`rekindle alerts`."""

from __future__ import annotations

from pathlib import Path

import click

from ...console.clock import now_ms
from ...console.database_fallback import database_option
from ...console.database_reader import open_reader
from ...console.options import json_option, print_json, state_option
from ...console.terminal import columns


@click.command()
@click.option("--all", "everything", is_flag=True, help="Include alerts that are resolved.")
@state_option
@database_option
@json_option
def alerts(everything: bool, state: Path, database: str | None, as_json: bool) -> None:
    """Show open alerts, the most severe first.

    A crash loop is one alert that counts its crashes. Acknowledge an alert with `rekindle ack`.

    \b
      $ rekindle alerts
      $ rekindle alerts --all --json

    If no supervisor is running, the database is read.
    """
    with open_reader(state, database) as reader:
        found = reader.get("/alerts")["alerts"]
    if not everything:
        found = [alert for alert in found if alert["resolved_at_wall_ms"] is None]
    if as_json:
        print_json({"alerts": found})
        return
    if not found:
        click.echo("There were no alerts." if everything else "There are no open alerts.")
        return
    from ...render.listings import alert_lines

    click.echo("\n".join(alert_lines(found, now_ms(), width=columns())))
