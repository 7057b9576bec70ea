"""`rekindle ack`."""

from __future__ import annotations

from typing import Any

import click

from ...client import path_of
from ...console.options import Where, client_of, json_option, supervisor_option
from ...console.orders import give


@click.command()
@click.argument("numbers", nargs=-1, type=click.IntRange(min=1), metavar="NUMBER...", required=True)
@click.option("--by", default="", metavar="NAME", help="Who acknowledges it (default: your user name).")
@supervisor_option
@json_option
def ack(numbers: tuple[int, ...], by: str, state: Where, as_json: bool) -> None:
    """Acknowledge alerts, so that they notify again only if they get worse.

    An acknowledged alert stays open until its cause is gone. `rekindle alerts` shows the numbers.

    \b
      $ rekindle ack 3
      $ rekindle ack 3 4 --by "night shift"
    """
    client, body = client_of(state), {"by": by or _user()}

    def acknowledge(number: str) -> Any:
        return client.post(path_of("alerts", number, "acknowledge"), body)

    ids = [str(number) for number in numbers]
    give(ids, acknowledge, lambda id_, _: f"Alert {id_} is acknowledged.", as_json=as_json)


def _user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "an operator"
