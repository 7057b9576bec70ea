"""`rekindle jobs batch` and `batches`, and how `rekindle jobs enqueue --then` makes one."""

from __future__ import annotations

from typing import Any

import click

from ...console.clock import now_ms
from ...console.database_fallback import database_option, open_jobs
from ...console.options import Where, json_option, limit_option, print_json, supervisor_option
from ...render.job_lines import batch_lines
from ...render.text import printable


@click.command()
@limit_option("batches")
@supervisor_option
@database_option
@json_option
def batches(limit: int, state: Where, database: str | None, as_json: bool) -> None:
    """List batches of jobs with their progress, the latest first.

    \b
      $ rekindle jobs batches
    """
    with open_jobs(state, database) as source:
        found = source.batches(limit)
    print_json(found) if as_json else click.echo("\n".join(batch_lines(found["batches"], now_ms())))


@click.command()
@click.argument("number", metavar="BATCH", type=click.IntRange(1, 10**18))
@supervisor_option
@database_option
@json_option
def batch(number: int, state: Where, database: str | None, as_json: bool) -> None:
    """Show how far one batch is.

    \b
      $ rekindle jobs batch 3
    """
    with open_jobs(state, database) as source:
        found = source.batch(number)
    print_json(found) if as_json else click.echo("\n".join(batch_lines([found], now_ms())))


def enqueue_batch(
    queue: str,
    values: list[Any],
    settings: dict[str, Any],
    state: Where,
    database: str | None,
    *,
    as_json: bool,
) -> None:
    """Enqueue jobs as a batch, and print its number."""
    with open_jobs(state, database) as source:
        added = source.enqueue_batch(queue, values, settings)
    if as_json:
        print_json({"queue": queue, **added})
        return
    ids, last = added["ids"], added["callback_id"]
    many = f"{len(ids)} jobs" if len(ids) > 1 else f"job {ids[0]}"
    click.echo(
        f"Batch {added['id']} of {many} is enqueued in {printable(queue)}; job {last} runs at its end."
    )
