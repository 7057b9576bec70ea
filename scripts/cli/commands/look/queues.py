"""`rekindle queues`."""

from __future__ import annotations

import click

from ...console.clock import now_ms
from ...console.database_fallback import database_option, open_jobs
from ...console.options import Where, duration, json_option, line, print_json, supervisor_option
from ...console.terminal import columns
from ...render.job_lines import periodic_lines, stats_lines
from ...render.text import printable, span
from ..help import Subcommands

queue_names = click.argument("names", nargs=-1, required=True, metavar="QUEUE...")


@click.group(cls=Subcommands, invoke_without_command=True)
@supervisor_option
@database_option
@json_option
@click.pass_context
def queues(context: click.Context, state: Where, database: str | None, as_json: bool) -> None:
    """Show queues; pause and resume them.

    \b
      $ rekindle queues
      $ rekindle queues pause mail --reason "the server is down" --for 30m
      $ rekindle queues resume mail

    LEFT estimates how long the pending jobs will take with the workers that run now. If no
    supervisor is running, these commands use the database.
    """
    if context.invoked_subcommand is not None:
        return
    with open_jobs(state, database) as source:
        found = source.stats()
    print_json(found) if as_json else click.echo("\n".join(stats_lines(found, now_ms(), width=columns())))


@queues.command()
@supervisor_option
@database_option
@json_option
def periodic(state: Where, database: str | None, as_json: bool) -> None:
    """List the jobs that are enqueued by the clock.

    \b
      $ rekindle queues periodic

    MISSED counts the due times that passed while no supervisor ran.
    """
    with open_jobs(state, database) as source:
        found = source.periodic()
    if as_json:
        print_json(found)
    else:
        click.echo("\n".join(periodic_lines(found["periodic"], now_ms(), width=columns())))


@queues.command()
@queue_names
@click.option("--reason", callback=line, default="", metavar="TEXT", help="Why; the audit shows it, too.")
@click.option(
    "--for", "for_s", callback=duration, metavar="TIME", help="Resume after this time: 90s, 30m, 2h, 1d."
)
@supervisor_option
@database_option
@json_option
def pause(
    names: tuple[str, ...],
    reason: str,
    for_s: float | None,
    state: Where,
    database: str | None,
    as_json: bool,
) -> None:
    """Start no further jobs of queues until you resume them.

    Jobs that are running continue to their end, and new ones can be enqueued. The pause outlives
    restarts of the workers and of the supervisor. With --for it ends by itself.

    \b
      $ rekindle queues pause mail --reason "the server is down" --for 30m
    """
    lasts = "until it is resumed" if for_s is None else f"for {span(for_s * 1000)}"
    with open_jobs(state, database) as source:
        for name in names:
            source.pause_queue(name, reason, for_s)
            if not as_json:
                click.echo(f"Queue {printable(name)} is paused {lasts}.")
    if as_json:
        print_json({"paused": list(names)})


@queues.command()
@queue_names
@supervisor_option
@database_option
@json_option
def resume(names: tuple[str, ...], state: Where, database: str | None, as_json: bool) -> None:
    """Start jobs of paused queues again.

    \b
      $ rekindle queues resume mail
    """
    results: list[dict[str, str]] = []
    with open_jobs(state, database) as source:
        for name in names:
            was_paused = source.resume_queue(name)
            results.append({"queue": name, "result": "done" if was_paused else "already"})
            if not as_json:
                now = "is resumed" if was_paused else "was not paused"
                click.echo(f"Queue {printable(name)} {now}.")
    if as_json:
        print_json({"results": results})
