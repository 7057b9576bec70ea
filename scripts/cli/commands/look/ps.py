"""`rekindle ps`."""

from __future__ import annotations

from typing import Any

import click

from ...client import ControlClient, ControlError
from ...console.options import json_option, print_json
from ...console.state_search import Found, running_supervisors
from ...console.terminal import columns
from ...render.status_table import summary, table
from ...render.text import printable, span
from ...state_files import SOCKET_NAME

ANSWER_S = 3.0


@click.command()
@json_option
def ps(as_json: bool) -> None:
    """List the supervisors that run on this machine.

    Root sees those of all users; other users see their own.

    \b
      $ rekindle ps
      $ rekindle status --state /srv/app/.rekindle
      $ rekindle ps --json | jq -r '.supervisors[].state'

    A command that names no supervisor uses the state directory .rekindle in the current folder or
    the nearest one above it. -c FILE or --state DIR names another one, and so does the environment
    variable REKINDLE_STATE.
    """
    found = [_described(each) for each in running_supervisors()]
    if as_json:
        print_json({"supervisors": found})
        return
    if not found:
        click.echo("No supervisor is running.")
        return
    rows = [_row(each) for each in found]
    click.echo("\n".join(table(("PID", "UPTIME", "VERSION", "STATE", "WORKERS"), rows, width=columns())))


def _described(found: Found) -> dict[str, Any]:
    """The supervisor's own answers; the error if it does not answer."""
    known = {"pid": found.pid, "uid": found.uid, "state": str(found.state)}
    client = ControlClient(found.state / SOCKET_NAME, timeout_s=ANSWER_S)
    try:
        info, workers = client.get("/info"), client.get("/workers")["workers"]
    except ControlError as error:
        return {**known, "error": str(error)}
    return {
        **known,
        "version": info["version"],
        "uptime_ms": info["at_wall_ms"] - info["started_at_wall_ms"],
        "dashboard": info["dashboard"],
        "workers": [{"id": each["component_id"], "shown": each["shown"]} for each in workers],
    }


def _row(each: dict[str, Any]) -> tuple[str, ...]:
    pid, state = str(each["pid"]), printable(each["state"])
    if "error" in each:
        return (pid, "-", "-", state, printable(each["error"]))
    uptime = span(each["uptime_ms"] // 1000 * 1000)
    return (pid, uptime, each["version"], state, summary(each["workers"]))
