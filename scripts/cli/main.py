"""`rekindle`: what a person or a script types."""

from __future__ import annotations

import click

from .commands.help import TopLevel
from .commands.index import Commands


@click.group(cls=TopLevel, commands=Commands(), context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="rekindle", prog_name="rekindle")
def main() -> None:
    """Rekindle brings crashed workers back.

    \b
    See it at work:
      rekindle demo                 four workers, one of which crashes now and then
      rekindle demo --for 20        the same, for 20 seconds

    \b
    Run workers of your own, and look at them from another terminal:
      rekindle config init workers.toml
      rekindle run workers.toml
      rekindle status --watch
      rekindle explain worker:tag:0

    \b
    Exit codes: 0 done, 1 failed, 2 bad usage or configuration, 3 no supervisor running,
    4 no such worker.
    """
