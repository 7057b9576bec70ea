"""`rekindle`: what a person or a script types."""

from __future__ import annotations

from pathlib import Path

import click

from .config_commands import config
from .run_command import run


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="rekindle", prog_name="rekindle")
def main() -> None:
    """Rekindle brings crashed workers back.

    \b
    See it at work:
      rekindle demo                 three workers, one of which crashes now and then
      rekindle demo --for 20        the same, for 20 seconds
    """


main.add_command(config)
main.add_command(run)


@main.command()
@click.option(
    "--state",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".state/demo"),
    show_default=True,
    help="Where the demo remembers its restarts.",
)
@click.option("--for", "seconds", type=click.FloatRange(min=0), help="Stop after this many seconds.")
def demo(state: Path, seconds: float | None) -> None:
    """Run three workers and show them live; Ctrl-C stops everything.

    The worker `worker:calibration:0` crashes now and then and comes back after 1, 2, 4, 8 and
    16 seconds; when it crashes too often it is given up. Kill any of the others from another
    terminal and watch: `kill -9 PID`. Start the demo again, and it remembers.
    """
    from .demo import run_demo

    run_demo(state, seconds)
