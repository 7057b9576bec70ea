"""`rekindle upgrade`."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import click

from ...client import ControlError, NoAnswerError, NoSupervisorError
from ...console.exits import FAILED, say
from ...console.options import LONG_S, client_of, json_option, print_json, state_option

READY_S = 60.0
"""How long the new program, or the former one again, may take to answer."""
PAUSE_S = 0.05


@click.command()
@click.option(
    "--python",
    metavar="PATH",
    help="The Python interpreter of another installation.  [default: the one that the supervisor runs on]",
)
@click.option("--check", is_flag=True, help="Only check whether the upgrade is possible; change nothing.")
@state_option
@json_option
def upgrade(python: str | None, check: bool, state: Path, as_json: bool) -> None:
    """Replace the running supervisor by another version without touching its workers.

    \b
      $ pip install --upgrade rekindle-supervisor && rekindle upgrade
      $ rekindle upgrade --python /opt/rekindle-2/bin/python
      $ rekindle upgrade --check

    The supervisor makes a dry start of the installed version first: it must read the database, the
    file and what would be handed over. Then it executes that version in its own process. The pid
    stays, every worker runs on, and what happens to a worker meanwhile is recorded afterwards.
    If the new version does not become ready, the former one returns.

    \b
    Exit codes: 0 if the supervisor was upgraded, or could be with --check; 1 if the upgrade was
    refused or failed, and the former version runs; 3 if no supervisor is running.
    """
    client = client_of(state)
    path = None if python is None else os.path.abspath(python)
    asked = client.post("/upgrade", {"python": path, "check": check}, timeout_s=LONG_S)["detail"]
    if check:
        text = f"Possible: {asked['from']} would be replaced by {asked['to']}."
        print_json(asked) if as_json else click.echo(text)
        return
    became = _outcome(state, asked["number"])
    if as_json:
        print_json({**became, "from": asked["from"], "to": asked["to"]})
    elif became["failed"] is None:
        versions = f"from {asked['from']} to {became['version']}"
        click.echo(f"The supervisor (pid {became['pid']}) was upgraded {versions}.")
        click.echo(f"Every worker ran on; none was watched for {became['blind_ms'] / 1000:.2f} s.")
    if became["failed"] is not None:
        say(f"the upgrade failed, and {became['version']} is back: {became['failed']}")
        raise SystemExit(FAILED)


def _outcome(state: Path, number: int) -> dict[str, Any]:
    """What became of an upgrade; the socket stays open meanwhile, and a connection waits."""
    deadline = time.monotonic() + READY_S
    while True:
        try:
            latest: dict[str, Any] = client_of(state).get("/upgrade")["detail"]
            if latest["blind_ms"] is not None and latest["number"] > number:
                return latest
        except (NoSupervisorError, NoAnswerError):
            if time.monotonic() > deadline:
                raise
        if time.monotonic() > deadline:
            raise ControlError(f"the supervisor was not replaced within {READY_S:g} s")
        time.sleep(PAUSE_S)
