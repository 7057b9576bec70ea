"""`rekindle top`."""

from __future__ import annotations

import click

from ...console.options import Where, client_of, supervisor_option


@click.command()
@supervisor_option
def top(state: Where) -> None:
    """Watch workers live and control them with single keys.

    \b
      $ rekindle top
      $ rekindle top --url https://rekindle.example.org:8377 --token-file operator.token

    Failed and crashed workers come first, those of one group together, with the CPU and memory that
    they use now. Below the table are the selected worker's timeline, its output as it is written, its
    last crash, and all alerts.

    \b
    Keys:
      r restart   p pause   u resume   x reset   s start   t stop
      l follow its output   f pause the output   Enter open or close a group
      a acknowledge an alert   / filter   ? help   q quit (workers keep running)

    The view waits for a supervisor that goes away and reconnects when it is back.
    """
    client = client_of(state)
    client.get("/info")  # fail now if no supervisor runs; the view waits for one that goes away later
    try:
        from ...top.top_app import Top
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("textual", "rich"):
            raise
        raise click.ClickException(
            "the live view needs the extra 'tui': pip install 'rekindle-supervisor[tui]'"
        ) from None
    Top(client).run()
