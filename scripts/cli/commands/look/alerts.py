"""`rekindle alerts` and `rekindle ack`: what is wrong, and taking note of it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from ...client import path_of
from ...console.database_fallback import database_option
from ...console.options import client_of, json_option, print_json, state_option
from ...console.orders import give
from ...console.past import past_of
from ...console.terminal import columns


@click.command()
@click.option("--all", "everything", is_flag=True, help="Also those that are over.")
@state_option
@database_option
@json_option
def alerts(everything: bool, state: Path, database: str | None, as_json: bool) -> None:
    """Show what is wrong, the worst first; a crash loop is one alert.

    \b
      $ rekindle alerts
      $ rekindle alerts --all --json

    Where no supervisor runs, the database itself is asked.
    """
    with past_of(state, database) as past:
        found = past.get("/alerts")["alerts"]
    if not everything:
        found = [alert for alert in found if alert["resolved_at_wall_ms"] is None]
    if as_json:
        print_json({"alerts": found})
        return
    if not found:
        click.echo("Nothing is wrong." if not everything else "Nothing was ever wrong.")
        return
    from ...render.listings import alert_lines

    click.echo("\n".join(alert_lines(found, time.time_ns() // 1_000_000, width=columns())))


@click.command()
@click.argument("numbers", nargs=-1, type=click.IntRange(min=1), metavar="NUMBER...", required=True)
@click.option("--by", default="", help="Who takes note of it (you).")
@state_option
@json_option
def ack(numbers: tuple[int, ...], by: str, state: Path, as_json: bool) -> None:
    """Take note of an alert: it is quiet unless it gets worse, and stays until it is over.

    \b
      $ rekindle ack 3
      $ rekindle ack 3 4 --by "night shift"
    """
    client, body = client_of(state), {"by": by or _user()}

    def note(number: str) -> Any:
        return client.post(path_of("alerts", number, "acknowledge"), body)

    give([str(each) for each in numbers], note, lambda id_, _: f"alert {id_} is noted", as_json=as_json)


def _user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "an operator"
