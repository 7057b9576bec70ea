"""`rekindle`: the command line."""

from __future__ import annotations

import click

from rekindle import __version__

from .commands.help import TopLevel
from .commands.index import CommandIndex


@click.group(cls=TopLevel, commands=CommandIndex(), context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="rekindle")
def main() -> None:
    """Rekindle supervises worker processes and restarts those that crash.

    \b
    Try it:
      rekindle demo                 four workers, one of which crashes from time to time
      rekindle demo --for 20        the same, for 20 seconds

    \b
    Run your own workers, and inspect them from another terminal:
      rekindle config init workers.toml
      rekindle run workers.toml
      rekindle status --watch
      rekindle explain worker:tag:0

    \b
    Exit codes: 0 success, 1 failure, 2 invalid usage or configuration,
    3 no supervisor running, 4 unknown worker.
    """
