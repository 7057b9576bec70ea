"""`rekindle demo`."""

from __future__ import annotations

from pathlib import Path

import click

from ...console.options import duration


@click.command()
@click.option(
    "--state",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".state/demo"),
    show_default=True,
    help="Where the demo keeps its database.",
)
@click.option(
    "--for", "seconds", callback=duration, metavar="TIME", help="Stop after this time: 20, 20s, 5m."
)
@click.option("--http", is_flag=True, help="Also serve the dashboard at 127.0.0.1:8377.")
def demo(state: Path, seconds: float | None, http: bool) -> None:
    """Run four demo workers and show them live until Ctrl-C.

    \b
      $ rekindle demo
      $ rekindle demo --http          # with the dashboard
      $ rekindle demo --for 20s

    worker:calibration:0 crashes every few seconds. Rekindle restarts it after 1, 2, 4, 8 and 16
    seconds and marks it failed when it crashes too often. Kill another worker from a second
    terminal (`kill -9 PID`) and watch it come back. The demo keeps its database: start it again,
    and the counters are still there.
    """
    from ...supervise.demo_view import run_demo

    run_demo(state, seconds, http=http)
