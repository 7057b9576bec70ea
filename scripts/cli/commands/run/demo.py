"""`rekindle demo`: four workers, one of which crashes now and then."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option(
    "--state",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".state/demo"),
    show_default=True,
    help="Where the demo remembers its restarts.",
)
@click.option("--for", "seconds", type=click.FloatRange(min=0), help="Stop after this many seconds.")
@click.option("--http", is_flag=True, help="Show the dashboard too, at 127.0.0.1:8377.")
def demo(state: Path, seconds: float | None, http: bool) -> None:
    """Run four workers and show them live; Ctrl-C stops everything.

    The worker `worker:calibration:0` crashes now and then and comes back after 1, 2, 4, 8 and
    16 seconds; when it crashes too often it is given up. Kill any of the others from another
    terminal and watch: `kill -9 PID`. Start the demo again, and it remembers.
    """
    from ...supervise.demo_view import run_demo

    run_demo(state, seconds, http=http)
