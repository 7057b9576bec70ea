"""`rekindle`: what a person or a script types."""

from __future__ import annotations

from pathlib import Path

import click

from .commands.acting import pause, reload, reset, restart, resume, scale, start, stop
from .commands.alerting import ack, alerts
from .commands.autopsies import history, report
from .commands.breaking import chaos
from .commands.completing import completion
from .commands.dashboard import dashboard
from .commands.database import db
from .commands.following import events
from .commands.jobs import jobs
from .commands.looking import audit, explain, output, resources, status
from .commands.simulating import simulate
from .commands.timelines import timeline
from .commands.top_level import TopLevel
from .commands.topping import top
from .config_commands import config
from .run_command import run


@click.group(cls=TopLevel, context_settings={"help_option_names": ["-h", "--help"]})
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


for command in (
    *(
        run,
        status,
        explain,
        history,
        timeline,
        report,
        output,
        resources,
        alerts,
        audit,
        events,
        dashboard,
        top,
    ),
    *(ack, pause, resume, start, stop, restart, reset, reload, scale),
    *(jobs, config, db, completion, simulate),
    chaos,
):
    main.add_command(command)


@main.command()
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
    from .demo import run_demo

    run_demo(state, seconds, http=http)
