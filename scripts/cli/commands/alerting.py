"""`rekindle alerts` and `rekindle ack`: what is wrong, and taking note of it."""

from __future__ import annotations

import time
from pathlib import Path

import click

from ..client import path_of
from .asking import client_of, json_option, print_json, state_option
from .terminal import columns


@click.command()
@click.option("--all", "everything", is_flag=True, help="Also those that are over.")
@state_option
@json_option
def alerts(everything: bool, state: Path, as_json: bool) -> None:
    """Show what is wrong, the worst first; a crash loop is one alert.

    \b
      $ rekindle alerts
      $ rekindle alerts --all --json
    """
    found = client_of(state).get("/alerts")["alerts"]
    if not everything:
        found = [alert for alert in found if alert["resolved_at_wall_ms"] is None]
    if as_json:
        print_json({"alerts": found})
        return
    if not found:
        click.echo("Nothing is wrong." if not everything else "Nothing was ever wrong.")
        return
    from ..listings import alert_lines

    click.echo("\n".join(alert_lines(found, time.time_ns() // 1_000_000, width=columns())))


@click.command()
@click.argument("numbers", nargs=-1, type=click.IntRange(min=1), metavar="NUMBER...", required=True)
@click.option("--by", default="", help="Who takes note of it (you).")
@state_option
def ack(numbers: tuple[int, ...], by: str, state: Path) -> None:
    """Take note of an alert: it makes no more noise, and stays until it is over.

    \b
      $ rekindle ack 3
    """
    client = client_of(state)
    for number in numbers:
        client.post(path_of("alerts", str(number), "acknowledge"), {"by": by or _user()})
        click.echo(f"alert {number} is noted")


def _user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "an operator"
