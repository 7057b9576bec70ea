"""`rekindle simulate`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...console.options import address_option, duration, json_option, print_json, worker_ids
from ...console.terminal import colour_wanted, columns

if TYPE_CHECKING:
    from ...simulate.named_forecast import ForecastQuestion, Named

# The forecast loads the actors, so it is imported when the command runs, not for `--help`.

PRESET_NAMES = ("steady", "service", "patient", "notify", "plugin")


@click.command()
@click.option("--preset", type=click.Choice(PRESET_NAMES), help="The policy to simulate (default: steady).")
@click.option(
    "--config", type=click.Path(path_type=Path), metavar="FILE", help="Take the policy from this file …"
)
@click.option("--worker", metavar="ID", help="… of this worker or group.")
@click.option("--set", "changes", multiple=True, metavar="FIELD=VALUE", help="Change a field of the policy.")
@click.option(
    "--compare", multiple=True, metavar="PRESET[,FIELD=VALUE…]", help="Compare with another policy."
)
@click.option(
    "--dies-after", callback=duration, metavar="TIME", help="How long each generation lives (default: 1s)."
)
@click.option(
    "--outage",
    callback=duration,
    metavar="TIME",
    help="The worker dies only during this time, then stays up.",
)
@click.option("--exit", "exit_", metavar="CODE|SIGNAL", help="How it ends: 0, 1, SIGKILL (default: 1).")
@click.option(
    "--healthy-after", callback=duration, metavar="TIME", help="Time from a start to healthy (default: 0)."
)
@click.option(
    "--replay", metavar="ID", shell_complete=worker_ids, help="Replay the recorded deaths of a real worker."
)
@click.option(
    "--for", "for_s", callback=duration, metavar="TIME", help="How much time to simulate (default: 24h)."
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=1, show_default=True, help="The seed of the random jitter."
)
@click.option("--every", metavar="TIME", help="Run the worker at this interval, such as 15m …")
@click.option("--cron", metavar="LINE", help="… or at the times of this cron line, such as '0 3 * * *'.")
@click.option("--timezone", metavar="ZONE", help="The time zone of the cron line (default: UTC).")
@click.option(
    "--from",
    "start",
    type=click.DateTime(),
    metavar="DATE",
    help="Show due times from then on (default: now).",
)
@click.option("--all", "everything", is_flag=True, help="Show every generation, however many there are.")
@click.option(
    "--svg", type=click.Path(path_type=Path), metavar="FILE", help="Also draw the result into this file."
)
@address_option
@json_option
def simulate(svg: Path | None, as_json: bool, everything: bool, **asked: Any) -> None:
    """Show what a restart policy would do, without running anything.

    The decisions come from the same function that a running supervisor uses, so the result is
    what would really happen.

    \b
    A worker that dies 3 s after every start, under several policies:
      $ rekindle simulate --preset steady --dies-after 3s
      $ rekindle simulate --dies-after 3s --compare patient --compare plugin,max_consecutive=8

    \b
    A database outage of 10 minutes: do the workers survive it, and with which limit?
      $ rekindle simulate --outage 10m
      $ rekindle simulate --outage 10m --set max_in_window=15 --compare steady

    \b
    The policy of a worker in a file; the recorded deaths of a real worker under another policy:
      $ rekindle simulate --config workers.toml --worker web --dies-after 30s
      $ rekindle simulate --replay worker:tag:0 --preset patient --set max_lifetime=none

    \b
    When is a scheduled worker due, across a change of the clocks, and what becomes of a failing run?
      $ rekindle simulate --cron '30 2 * * *' --timezone Europe/Berlin --from 2027-03-27
      $ rekindle simulate --config workers.toml --worker backup --dies-after 10m

    \b
    For scripts, and as a picture:
      $ rekindle simulate --outage 1h --json | jq '.forecasts[0].verdict'
      $ rekindle simulate --outage 1h --compare patient --svg outage.svg

    TIME is 90, 90s, 30m, 2h or 1h30m. FIELD is a field of the [restart] table (`rekindle config
    schema` lists them); the value none removes a limit. A replay takes the uptime and the end of
    each generation from the history of a worker and asks the policy for the delays between them.
    It reads from the running supervisor, or from the database in the state directory if there is
    none.
    """
    from ...simulate.forecasts import SimulateRequest, answer
    from ...simulate.policies import QuestionError

    try:
        question, answers = answer(SimulateRequest(**asked))
    except QuestionError as error:
        raise click.UsageError(str(error)) from None
    _show(question, answers, svg, as_json=as_json, everything=everything)


def _show(
    question: ForecastQuestion, answers: list[Named], svg: Path | None, *, as_json: bool, everything: bool
) -> None:
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
