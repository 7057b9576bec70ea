"""`rekindle jobs`.

The commands ask a running supervisor over its socket; if none is running, they use the database.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import click

from ...console.clock import now_ms
from ...console.database_fallback import database_option, open_jobs
from ...console.exits import FAILED, say
from ...console.options import Where, duration, json_option, limit_option, print_json, supervisor_option
from ...console.terminal import columns
from ...render.job_lines import detail_lines, enqueued_lines, job_lines, stats_lines, toxic_lines
from ..help import Subcommands
from .batches import batch, batches, enqueue_batch
from .job_payloads import payloads

STATES = ("pending", "running", "done", "error", "toxic", "cancelled", "expired", "waiting")

queue_option = click.option("--queue", metavar="NAME", help="Only jobs of this queue.")
job_ids = click.argument("ids", nargs=-1, required=True, metavar="JOB...", type=click.IntRange(1))

MOST_PRIORITY = 2**31 - 1
"""As far as the column of the database goes, in either direction."""


def _priority(_ctx: click.Context, _param: click.Parameter, given: int) -> int:
    if abs(given) > MOST_PRIORITY:
        raise click.BadParameter(f"a priority is between -{MOST_PRIORITY} and {MOST_PRIORITY}, not {given}")
    return given


@click.group(cls=Subcommands)
def jobs() -> None:
    """Enqueue jobs, inspect them, and handle those that kill workers.

    \b
      $ rekindle jobs enqueue tag '{"path": "song.mp3"}'
      $ rekindle jobs stats
      $ rekindle jobs toxic
      $ rekindle jobs retry 42
      $ rekindle jobs cancel 43

    If no supervisor is running, these commands use the database.
    """


@jobs.command()
@click.argument("queue", metavar="QUEUE")
@click.argument("payload", required=False, metavar="[JSON]")
@click.option(
    "--file",
    "file",
    type=click.File("rb"),
    metavar="FILE",
    help="Enqueue one job per line of this JSON Lines file; - reads standard input.",
)
@click.option(
    "--priority",
    type=int,
    default=0,
    show_default=True,
    callback=_priority,
    help="Jobs with smaller numbers run first.",
)
@click.option(
    "--in",
    "delay_s",
    callback=duration,
    metavar="TIME",
    help="Run it after this time at the earliest: 90s, 30m, 2h, 1d.",
)
@click.option(
    "--error-retries",
    "--max-retries",
    "error_retries",
    type=click.IntRange(0),
    help="How often to retry it if it raises or times out.",
)
@click.option(
    "--retry-delay",
    "retry_delay_s",
    callback=duration,
    metavar="TIME",
    help="The delay before the first of these retries; it doubles each time.",
)
@click.option(
    "--timeout", "timeout_s", callback=duration, metavar="TIME", help="How long one execution may take."
)
@click.option(
    "--expires-in",
    "expires_in_s",
    callback=duration,
    metavar="TIME",
    help="If it has not begun after this time, it never runs.",
)
@click.option("--crash-retries", type=click.IntRange(0), help="How often to retry it if its worker dies.")
@click.option(
    "--after",
    type=click.IntRange(1),
    multiple=True,
    metavar="JOB",
    help="Run it when this job is done, and cancel it if that one fails; may be repeated.",
)
@click.option(
    "--then",
    metavar="JSON",
    help="Enqueue them as a batch: run a job with this payload once, when all of them have ended.",
)
@click.option("--then-queue", metavar="QUEUE", help="The queue of that job; by default the same.")
@click.option("--key", metavar="KEY", help="What the queue's limits for a key count together: a customer …")
@click.option("--unique", metavar="KEY", help="Add it only if no job with this key was added lately.")
@click.option(
    "--unique-for",
    "unique_for_s",
    callback=duration,
    metavar="TIME",
    help="How long a job with the same key, or without one the same payload, prevents another: 30m, 1d.",
)
@click.option("--traceparent", envvar="TRACEPARENT", metavar="TEXT", help="Its trace, or $TRACEPARENT.")
@supervisor_option
@database_option
@json_option
def enqueue(
    queue: str,
    payload: str | None,
    file: IO[bytes] | None,
    priority: int,
    delay_s: float | None,
    error_retries: int | None,
    retry_delay_s: float | None,
    timeout_s: float | None,
    expires_in_s: float | None,
    crash_retries: int | None,
    after: tuple[int, ...],
    then: str | None,
    then_queue: str | None,
    key: str | None,
    unique: str | None,
    unique_for_s: float | None,
    traceparent: str | None,
    state: Where,
    database: str | None,
    as_json: bool,
) -> None:
    """Enqueue one job, or one job per line of a file.

    The whole file is checked first: if a line is not JSON, nothing is enqueued.

    \b
      $ rekindle jobs enqueue tag '{"path": "song.mp3"}'
      $ rekindle jobs enqueue tag --file songs.jsonl --priority 10
      $ rekindle jobs enqueue tag '{"path": "song.mp3"}' --unique song.mp3 --unique-for 1h
      $ rekindle jobs enqueue tag --file songs.jsonl --unique-for 1h
      $ rekindle jobs enqueue tag --file songs.jsonl --then '{"report": "all songs"}'
      $ find . -name '*.mp3' | jq -R '{path: .}' -c | rekindle jobs enqueue tag --file -
    """
    if (payload is None) == (file is None):
        raise click.UsageError("pass the job as JSON, or a JSON Lines file with --file")
    if unique is not None and not unique_for_s:
        raise click.UsageError("--unique KEY needs --unique-for TIME")
    if then_queue is not None and then is None:
        raise click.UsageError("--then-queue QUEUE needs --then JSON")
    values = list(payloads(payload, file))
    settings: dict[str, Any] = {
        "priority": priority,
        "delay_s": delay_s or 0.0,
        "error_retries": error_retries,
        "retry_delay_s": retry_delay_s,
        "timeout_s": timeout_s,
        "expires_in_s": expires_in_s,
        "crash_retries": crash_retries,
        "key": key,
        "after": list(after) or None,
        "traceparent": traceparent or None,
    }
    settings = {name: value for name, value in settings.items() if value is not None}
    if unique_for_s:
        settings["unique"] = {"key": unique, "for_s": unique_for_s}
    if then is not None:
        (last,) = payloads(then, None)
        settings |= {"then": last} | ({} if then_queue is None else {"then_queue": then_queue})
        enqueue_batch(queue, values, settings, state, database, as_json=as_json)
        return
    with open_jobs(state, database) as source:
        answer = source.enqueue(queue, values, settings)
    if as_json:
        print_json({"queue": queue, **answer})
    else:
        click.echo("\n".join(enqueued_lines(queue, answer["ids"], answer["existing"])))


@jobs.command("list")
@queue_option
@click.option("--in-state", "job_state", type=click.Choice(STATES), help="Only jobs in this state.")
@limit_option("jobs")
@supervisor_option
@database_option
@json_option
def list_(
    queue: str | None, job_state: str | None, limit: int, state: Where, database: str | None, as_json: bool
) -> None:
    """List jobs, the latest first.

    \b
      $ rekindle jobs list --queue tag --in-state running
    """
    if isinstance(state, Path) and str(state) in STATES and not state.exists():
        raise click.UsageError(f"--state names a state directory; for jobs in a state: --in-state {state}")
    with open_jobs(state, database) as source:
        found = source.find(queue=queue, state=job_state, limit=limit)
    if as_json:
        print_json({"jobs": [each["job"] for each in found["jobs"]]})
    else:
        click.echo("\n".join(job_lines(found["jobs"], now_ms(), width=columns())))
    _tell_what_is_left_off(found)


@jobs.command()
@click.argument("job", metavar="JOB", type=click.IntRange(1))
@supervisor_option
@database_option
@json_option
def show(job: int, state: Where, database: str | None, as_json: bool) -> None:
    """Show one job, and the deaths that it caused.

    \b
      $ rekindle jobs show 42
    """
    with open_jobs(state, database) as source:
        found = source.get(job)
    print_json(found) if as_json else click.echo("\n".join(detail_lines(found, now_ms())))


@jobs.command()
@supervisor_option
@database_option
@json_option
def stats(state: Where, database: str | None, as_json: bool) -> None:
    """Show the counts of every queue and their total.

    \b
      $ rekindle jobs stats

    LEFT estimates how long the pending jobs will take with the workers that run now.
    """
    with open_jobs(state, database) as source:
        found = source.stats()
    print_json(found) if as_json else click.echo("\n".join(stats_lines(found, now_ms(), width=columns())))


jobs.add_command(batches)
jobs.add_command(batch)


@jobs.command()
@queue_option
@limit_option("jobs")
@supervisor_option
@database_option
@json_option
def toxic(queue: str | None, limit: int, state: Where, database: str | None, as_json: bool) -> None:
    """List the jobs that killed too many workers, with the evidence.

    Toxic jobs are not retried until you decide: see `rekindle jobs retry` and `drop`.

    \b
      $ rekindle jobs toxic
    """
    with open_jobs(state, database) as source:
        found = source.find(queue=queue, state="toxic", limit=limit, evidence=True)
    print_json(found) if as_json else click.echo("\n".join(toxic_lines(found["jobs"], now_ms())))
    _tell_what_is_left_off(found)


@jobs.command()
@job_ids
@supervisor_option
@database_option
@json_option
def retry(ids: tuple[int, ...], state: Where, database: str | None, as_json: bool) -> None:
    """Retry toxic, failed, cancelled or expired jobs with their counters cleared.

    \b
      $ rekindle jobs retry 42
    """
    _each(ids, state, database, "retry", lambda job, _: f"Job {job} is pending again.", as_json=as_json)


@jobs.command()
@job_ids
@supervisor_option
@database_option
@json_option
def cancel(ids: tuple[int, ...], state: Where, database: str | None, as_json: bool) -> None:
    """Cancel pending jobs, and end running ones.

    \b
      $ rekindle jobs cancel 42
      $ rekindle jobs list --in-state cancelled

    A pending job is cancelled at once. A running job is asked to end; if it does not within the
    `cancel_grace_s` of its worker, its process is ended. Neither counts as a crash. Its result is dropped.
    """
    _each(ids, state, database, "cancel", _cancelled, as_json=as_json)


def _cancelled(job: int, detail: Any) -> str:
    asked = detail.get("state") == "running"
    return f"Job {job} is running and is asked to end." if asked else f"Job {job} is cancelled."


@jobs.command()
@job_ids
@supervisor_option
@database_option
@json_option
def drop(ids: tuple[int, ...], state: Where, database: str | None, as_json: bool) -> None:
    """Delete jobs and their evidence for good.

    \b
      $ rekindle jobs export > toxic.jsonl && rekindle jobs drop 42

    A running job is not deleted.
    """
    _each(ids, state, database, "drop", lambda job, _: f"Job {job} is deleted.", as_json=as_json)


@jobs.command()
@queue_option
@click.option("--in-state", "job_state", type=click.Choice(STATES), default="toxic", show_default=True)
@click.option("--limit", type=click.IntRange(1, 1000), default=1000, show_default=True, metavar="N")
@supervisor_option
@database_option
def export(queue: str | None, job_state: str, limit: int, state: Where, database: str | None) -> None:
    """Print jobs with their evidence as JSON, one per line.

    \b
      $ rekindle jobs export > toxic.jsonl
      $ jq -c .job.payload toxic.jsonl | rekindle jobs enqueue tag --file -
    """
    import json

    with open_jobs(state, database) as source:
        found = source.find(queue=queue, state=job_state, limit=limit)
        for each in found["jobs"]:
            # One at a time and whole: a list has only the beginning of a long payload.
            click.echo(json.dumps(source.get(each["job"]["id"])))
    _tell_what_is_left_off(found)
    if found["left_off"]:
        raise SystemExit(FAILED)


def _tell_what_is_left_off(found: Any) -> None:
    if found["left_off"]:
        say(f"{found['left_off']} more jobs are left off: the answer would be too long")


def _each(
    ids: tuple[int, ...],
    state: Where,
    database: str | None,
    order: str,
    sentence: Callable[[int, Any], str],
    *,
    as_json: bool,
) -> None:
    """Try each job and report on each; the first error determines the exit code."""
    from ...client import ControlError, NoSupervisorError
    from ...console.exits import exit_code

    results: list[dict[str, Any]] = []
    code = 0
    with open_jobs(state, database) as source:
        for job in dict.fromkeys(ids):
            try:
                detail = source.order(job, order)
            except NoSupervisorError:
                raise
            except ControlError as error:
                code = code or exit_code(error) or FAILED
                results.append({"id": job, "result": error.error or "failed", "message": str(error)})
                say(str(error))
                continue
            results.append({"id": job, "result": "done", **detail})
            if not as_json:
                click.echo(sentence(job, detail))
    if as_json:
        print_json({"results": results})
    if code:
        raise SystemExit(code)
