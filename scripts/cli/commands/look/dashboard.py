"""`rekindle dashboard`."""

from __future__ import annotations

import os
import time
from pathlib import Path

import click

from ...client import ControlError, RemoteAddress
from ...console.exits import say
from ...console.options import Where, client_of, json_option, print_json, supervisor_option

_TOKEN_FILE = "http-{role}.token"
_REDIRECT_FILE = "dashboard.html"
LOADING_S = 5.0
"""How long the browser has to read the file with the link."""


@click.command()
@click.option("--operator", is_flag=True, help="Print a link that can also give orders, not only view.")
@click.option("--open", "open_", is_flag=True, help="Open the link in a browser instead of printing it.")
@supervisor_option
@json_option
def dashboard(operator: bool, open_: bool, state: Where, as_json: bool) -> None:
    """Print a link to the dashboard; the link contains a secret token.

    \b
      $ rekindle dashboard                # to view
      $ rekindle dashboard --operator     # to restart, pause and stop workers too
      $ rekindle dashboard --open

    The dashboard is off by default: enable it with [http] in the file or with
    `rekindle run --http`. To revoke all links, delete http-*.token in the state directory and
    restart the supervisor.
    """
    if isinstance(state, RemoteAddress) and (operator or open_):
        raise click.UsageError("with --url the token file decides what the link may do; use neither option")
    info = client_of(state).get("/info")
    role = None if isinstance(state, RemoteAddress) else "operator" if operator else "viewer"
    url, token = _found(state, role, info["dashboard"])
    link = f"{url}#token={token}"
    if as_json:
        print_json({"url": url, "role": role, "link": link})
    elif open_ and isinstance(state, Path):
        _open(state, link)
    else:
        click.echo(link)


def _found(state: Where, role: str | None, url: str | None) -> tuple[str, str]:
    """The address of the dashboard, and the token."""
    if isinstance(state, RemoteAddress):
        return f"{state.url}/", state.token
    if url is None:
        raise ControlError("the dashboard is off; enable it with [http] in the file or with run --http")
    return url, (state / _TOKEN_FILE.format(role=role)).read_text().strip()


def _open(state: Path, link: str) -> None:
    """Open the link through a file: every user can read the arguments of the browser's process."""
    import webbrowser

    redirect = state.absolute() / _REDIRECT_FILE
    redirect.unlink(missing_ok=True)
    descriptor = os.open(redirect, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={link}">\n')
    try:
        if not webbrowser.open(redirect.as_uri()):
            raise ControlError("cannot start a browser; run this command without --open and use the link")
        say(f"opening the dashboard in a browser; the file with the link is removed in {LOADING_S:g} s")
        time.sleep(LOADING_S)
    finally:
        redirect.unlink(missing_ok=True)
