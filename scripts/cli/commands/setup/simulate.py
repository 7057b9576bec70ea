"""`rekindle simulate`: what a policy would do, without running anything."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from ...console.options import duration, json_option, print_json, state_option, worker_ids
from ...console.terminal import colour_wanted, columns

# The forecast loads the policies, and they the actors: only when the command runs, not for `--help`.

PRESET_NAMES = ("steady", "patient", "notify", "plugin")


@click.command(short_help="Show what a restart policy would do, without running anything.")
@click.option("--preset", type=click.Choice(PRESET_NAMES), help="The policy to ask about (steady).")
@click.option("--config", type=click.Path(path_type=Path), metavar="FILE", help="Take it from this file …")
@click.option("--worker", metavar="ID", help="… as it is for this worker or group.")
@click.option("--set", "changes", multiple=True, metavar="FIELD=VALUE", help="Change a field of the policy.")
@click.option(
    "--compare", multiple=True, metavar="PRESET[,FIELD=VALUE…]", help="Show another policy beside it."
)
@click.option("--dies-after", callback=duration, metavar="TIME", help="How long every life lasts (1s).")
@click.option("--outage", callback=duration, metavar="TIME", help="It dies only for this long, then lives.")
@click.option("--exit", "exit_", metavar="CODE|SIGNAL", help="How it dies: 0, 1, SIGKILL (1).")
@click.option(
    "--healthy-after", callback=duration, metavar="TIME", help="How long a start takes until healthy (0)."
)
@click.option("--replay", metavar="ID", shell_complete=worker_ids, help="Live a real worker's lives again.")
@click.option("--for", "for_s", callback=duration, metavar="TIME", help="When to stop looking (24h).")
@click.option(
    "--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Of the chance in jitter."
)
@click.option("--all", "everything", is_flag=True, help="Show every life, however many there are.")
@click.option("--svg", type=click.Path(path_type=Path), metavar="FILE", help="Draw it into this file, too.")
@state_option
@json_option
def simulate(svg: Path | None, as_json: bool, everything: bool, **asked: Any) -> None:
    """Show what a restart policy would do, without running anything.

    Every decision is made by the function that a running supervisor asks, so what is shown is
    what would happen.

    \b
    A worker that dies 3 s after every start, and two opinions on it:
      $ rekindle simulate --preset steady --dies-after 3s
      $ rekindle simulate --dies-after 3s --compare patient --compare plugin,max_consecutive=8

    \b
    The database is away for 10 minutes. Is anybody left afterwards? Which limit would do?
      $ rekindle simulate --outage 10m
      $ rekindle simulate --outage 10m --set max_in_window=15 --compare steady

    \b
    The policy of a worker in a file; the recorded deaths of a real one under another policy:
      $ rekindle simulate --config workers.toml --worker web --dies-after 30s
      $ rekindle simulate --replay worker:tag:0 --preset patient --set max_lifetime=none

    \b
    For scripts, and as a picture:
      $ rekindle simulate --outage 1h --json | jq '.forecasts[0].verdict'
      $ rekindle simulate --outage 1h --compare patient --svg outage.svg

    TIME is 90, 90s, 30m, 2h or 1h30m. FIELD is a field of the [restart] table: `rekindle config
    schema` lists them; "none" lifts a limit. A replay keeps how long each life was and how it
    ended, and asks the policy for the delays between them; it reads from a running supervisor,
    else from the database in the state directory.
    """
    from ...simulate.forecasts import Asked, answer
    from ...simulate.policies import AskedError

    try:
        question, answers = answer(Asked(**asked))
    except AskedError as error:
        raise click.UsageError(str(error)) from None
    if svg is not None:
        from ...simulate.forecast_svg import picture

        svg.write_text(picture(question, answers), encoding="utf-8")
    if as_json:
        from ...simulate.forecast_json import document

        print_json(document(question, answers))
        return
    from ...simulate.forecast_lines import Canvas, brush_for, lines

    brush = brush_for(sys.stdout.encoding if sys.stdout else None)
    canvas = Canvas(brush=brush, width=columns(), colour=colour_wanted(), everything=everything)
    click.echo("\n".join(lines(question, answers, canvas)))
