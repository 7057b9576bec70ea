"""`rekindle top`."""

from __future__ import annotations

from pathlib import Path

import click

from ...console.options import client_of, socket_of, state_option


@click.command()
@state_option
def top(state: Path) -> None:
    """Watch the workers live, and act on them with a key.

    \b
      $ rekindle top

    The workers in trouble come first. Below the table: the chosen worker's timeline, its last
    output, its last crash, and all alerts. r restarts it, p pauses, u resumes, x resets, a takes
    note of an alert, / filters, ? explains the keys, q leaves and stops nothing. It waits for a
    supervisor that is away and goes on when it is back.
    """
    client = client_of(state)
    client.get("/info")  # no supervisor now is a mistake; one that goes away later is waited for
    try:
        from ...top.top_app import Top
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("textual", "rich"):
            raise
        raise click.ClickException(
            "the live view needs the extra 'tui': pip install 'rekindle[tui]'"
        ) from None
    Top(socket_of(state), client).run()
