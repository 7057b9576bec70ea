"""`rekindle dashboard`: a link to the dashboard of a running supervisor."""

from __future__ import annotations

import os
from pathlib import Path

import click

from ...client import ControlError
from ...console.options import client_of, json_option, print_json, state_option

_TOKEN_FILE = "http-{role}.token"
_DOOR = "dashboard.html"


@click.command()
@click.option("--operator", is_flag=True, help="A link that may also give orders, not only look.")
@click.option("--open", "open_", is_flag=True, help="Open it in a browser instead of printing it.")
@state_option
@json_option
def dashboard(operator: bool, open_: bool, state: Path, as_json: bool) -> None:
    """Print a link to the dashboard; it holds a token, so keep it to yourself.

    \b
      $ rekindle dashboard                # may look
      $ rekindle dashboard --operator     # may also restart, pause and stop
      $ rekindle dashboard --open

    The dashboard is off until [http] stands in the file, or it is run with --http. To take the
    links back, remove the files http-*.token from the state directory and restart the supervisor.
    """
    url = client_of(state).get("/info")["dashboard"]
    if url is None:
        raise ControlError("the dashboard is off; turn it on with [http] in the file, or run with --http")
    role = "operator" if operator else "viewer"
    link = f"{url}#token={_token(state, role)}"
    if as_json:
        print_json({"url": url, "role": role, "link": link})
    elif open_:
        _open(state, link)
    else:
        click.echo(link)


def _token(state: Path, role: str) -> str:
    return (state / _TOKEN_FILE.format(role=role)).read_text().strip()


def _open(state: Path, link: str) -> None:
    """Open it by way of a file: the arguments of a browser can be seen by every user."""
    import webbrowser

    door = state.absolute() / _DOOR
    door.unlink(missing_ok=True)
    descriptor = os.open(door, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={link}">\n')
    if not webbrowser.open(door.as_uri()):
        raise ControlError(f"no browser could be started; open {door} in one")
