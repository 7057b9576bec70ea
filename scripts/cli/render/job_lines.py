"""Pure: jobs and queues as lines of text, from the server's JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from .job_progress import progress_of
from .status_table import Document, table
from .text import (
    age,
    counted,
    cut,
    exit_words,
    moment,
    printable,
    span,
)

_LONGEST_CELL = 60


def job_lines(found: Sequence[Document], now_ms: int, *, width: int | None = None) -> list[str]:
    """A table of jobs."""
    if not found:
        return ["no jobs"]
    heading = ("JOB", "STATE", "QUEUE", "AGE", "TRIES", "CRASHES", "WORKER", "PROGRESS, ERROR OR PAYLOAD")
    return table(heading, [_job(each["job"], now_ms) for each in found], width=width)


def enqueued_lines(queue: str, ids: Sequence[int], existing: Sequence[int]) -> list[str]:
    """Which jobs were added, and which were there already and are the same by `--unique-for`."""
    there, lines = set(existing), []
    if len(existing) == 1:
        lines.append(
            f"Job {existing[0]} is the same and in {printable(queue)} already; it is not added again."
        )
    elif existing:
        lines.append(
            f"{len(existing)} of the jobs are in {printable(queue)} already; they are not added again."
        )
    added = [id_ for id_ in dict.fromkeys(ids) if id_ not in there]
    if len(added) == 1:
        lines.append(f"Job {added[0]} is enqueued in {printable(queue)}.")
    elif added or not existing:
        listed = f" (ids {added[0]} to {added[-1]})" if added else ""
        lines.append(f"{len(added)} jobs are enqueued in {printable(queue)}{listed}.")
    return lines


def stats_lines(found: Document, now_ms: int, *, width: int | None = None) -> list[str]:
    """A table of queues, with the sum in the last line."""
    heading = ("QUEUE", "PENDING", "RUNNING", "DONE", "ERRORS", "TOXIC", "AVERAGE", "LEFT", "")
    served = set(found["served"])
    rows = [_figures(stats, stats["queue"], served, now_ms) for stats in found["queues"]]
    return table(heading, [*rows, _figures(found["all"], "all", {"all"}, now_ms)], width=width)


def periodic_lines(found: Sequence[Document], now_ms: int, *, width: int | None = None) -> list[str]:
    """A table of periodic jobs."""
    if not found:
        return ["no periodic jobs"]
    heading = ("NAME", "QUEUE", "NEXT", "LAST JOB", "MISSED", "SCHEDULE")
    return table(heading, [_periodic(each, now_ms) for each in found], width=width)


def _periodic(job: Document, now_ms: int) -> tuple[str, ...]:
    due = job["next_due_wall_ms"]
    return (
        printable(job["name"]),
        printable(job["queue"]),
        "-" if due is None else f"in {span(max(0, due - now_ms))}",
        "-" if job["last_job_id"] is None else str(job["last_job_id"]),
        str(job["missed"]),
        printable(job["schedule"]),
    )


def batch_lines(found: Sequence[Document], now_ms: int) -> list[str]:
    """A table of batches."""
    if not found:
        return ["no batches"]
    heading = ("BATCH", "AGE", "JOBS", "DONE", "FAILED", "LEFT", "THEN JOB")
    return table(heading, [_batch(each, now_ms) for each in found])


def _batch(batch: Document, now_ms: int) -> tuple[str, ...]:
    left = batch["total"] - batch["done"] - batch["failed"]
    counts = [str(count) for count in (batch["total"], batch["done"], batch["failed"], left)]
    callback = "-" if batch["callback_id"] is None else str(batch["callback_id"])
    return (str(batch["id"]), age(now_ms - batch["created_at_wall_ms"]), *counts, callback)


def toxic_lines(found: Sequence[Document], now_ms: int) -> list[str]:
    """Toxic jobs, each with its crashes."""
    if not found:
        return ["no toxic jobs"]
    jobs = [[*_conviction(each["job"], now_ms), *_evidence(each["crashes"]), ""] for each in found]
    return [line for lines in jobs for line in lines]


def detail_lines(found: Document, now_ms: int) -> list[str]:
    """One job in detail."""
    job = found["job"]
    lines = [
        f"job        {job['id']} of {printable(job['queue'])}, {job['state']}",
        f"payload    {_value(job, 'payload')}",
        f"priority   {job['priority']}",
        f"attempts   {job['attempts']} ({_counts(job)})",
    ]
    times = (("created", "created_at"), ("started", "started_at"), ("finished", "finished_at"))
    lines += [
        f"{word:<10} {moment(at)}, {age(now_ms - at)}"
        for word, name in times
        if (at := job[f"{name}_wall_ms"]) is not None
    ]
    if job["claimed_by"] is not None:
        lines.append(f"worker     {printable(job['claimed_by'])}, generation {job['claimed_generation']}")
    if job["state"] == "pending" and job["not_before_wall_ms"] > now_ms:
        lines.append(f"due        in {span(job['not_before_wall_ms'] - now_ms)}")
    lines += _settings(job, now_ms)
    if job.get("progress") is not None:
        at = job["progress"]["at_wall_ms"]
        lines.append(f"progress   {progress_of(job['progress'])}, {age(now_ms - at)}")
    if job.get("checkpoint") is not None:
        lines.append(f"checkpoint {cut(printable(json.dumps(job['checkpoint'], ensure_ascii=False)), 100)}")
    if job["result"] is not None:
        lines.append(f"result     {_value(job, 'result')}")
    if job["error"] is not None:
        # Indented: no line of it looks like one of ours.
        error = [printable(line) for line in job["error"].rstrip().split("\n")]
        lines.append("\n           ".join((f"error      {error[0]}", *error[1:])))
    return [*lines, *_failures(job.get("errors") or ()), *_evidence(found["crashes"])]


def _counts(job: Document) -> str:
    crashes, errors = job["crash_count"], job["error_count"]
    return f"{counted(crashes, 'crash', 'crashes')}, {counted(errors, 'error', 'errors')}"


def _settings(job: Document, now_ms: int) -> Iterator[str]:
    """What it belongs to, and what ends it; a supervisor of an older version says nothing of it."""
    for word, name in (("key", "key"), ("unique", "unique_key"), ("batch", "batch_id")):
        if job.get(name) is not None:
            yield f"{word:<10} {printable(str(job[name]))}"
    if job["state"] == "waiting":
        many = job.get("waits_for")
        yield f"waits for  {counted(many, 'job', 'jobs') if many else 'the end of its batch'}"
    if job.get("failed_by") is not None:
        yield f"because of job {job['failed_by']}"
    if job.get("timeout_ms") is not None:
        yield f"timeout    {span(job['timeout_ms'])}"
    if job["state"] == "pending" and job.get("expires_at_wall_ms") is not None:
        yield f"expires    in {span(max(0, job['expires_at_wall_ms'] - now_ms))}, unless it has begun"
    if job["state"] == "running" and job.get("cancel_requested_at_wall_ms") is not None:
        yield f"cancelled  {age(now_ms - job['cancel_requested_at_wall_ms'])}, it is asked to end"


def _failures(errors: Sequence[Document]) -> Iterator[str]:
    """The errors of earlier executions; the last one is shown whole above."""
    for error in errors[:-1]:
        first = printable(error["error"].partition("\n")[0])
        yield f"  error    {moment(error['at_wall_ms'])}, attempt {error['attempt']}: {cut(first, 100)}"


def _job(job: Document, now_ms: int) -> tuple[str, ...]:
    wrong = (job["error"] or "").partition("\n")[0]
    progress = job.get("progress") if job["state"] == "running" else None
    shown = progress_of(progress) if progress else printable(wrong) if wrong else _value(job, "payload")
    return (
        str(job["id"]),
        job["state"],
        printable(job["queue"]),
        age(now_ms - job["created_at_wall_ms"]),
        str(job["attempts"]),
        str(job["crash_count"]),
        printable(job["claimed_by"] or "-"),
        cut(shown, _LONGEST_CELL),
    )


def _figures(stats: Document, name: str, served: set[str], now_ms: int) -> tuple[str, ...]:
    numbers = [str(stats[field]) for field in ("pending", "running", "completed", "errors", "toxic")]
    average = span(stats["average_ms"]) if stats["completed"] else "-"
    left = span(stats["eta_ms"]) if stats["eta_ms"] else "-"
    notes = [] if name in served or not stats["pending"] else ["no worker serves it"]
    notes += [queue_pause_words(pause, now_ms)] if (pause := stats.get("pause")) else []
    notes += [f"{stats[state]} {state}" for state in ("waiting", "cancelled", "expired") if stats.get(state)]
    return (printable(name), *numbers, average, left, "; ".join(notes))


def queue_pause_words(pause: Document, now_ms: int) -> str:
    """How long a queue is paused, and why."""
    until = pause["until_wall_ms"]
    lasts = "" if until is None else f" for {span(max(0, until - now_ms))} more"
    return f"paused{lasts}" + (f": {printable(pause['reason'])}" if pause["reason"] else "")


def _conviction(job: Document, now_ms: int) -> Iterator[str]:
    since = age(now_ms - job["toxic_since_wall_ms"]) if job["toxic_since_wall_ms"] is not None else "-"
    yield f"job {job['id']} of {printable(job['queue'])}, toxic {since}: {printable(job['error'] or '')}"
    yield f"  payload  {cut(_value(job, 'payload'), 100)}"


def _evidence(crashes: Sequence[Document]) -> Iterator[str]:
    for crash in crashes:
        who = f"{printable(crash['component_id'])}, generation {crash['generation']}"
        code, signal = crash["exit_code"], crash["signal"]
        told, how = printable(crash["cause"]), exit_words(code, signal)
        known = code is not None or signal is not None
        end = f"{told}, {how}" if known and how != told else told
        yield f"  crash    {moment(crash['at_wall_ms'])}, attempt {crash['attempt']}, {who}: {end}"
        for line in crash["output"][-3:]:
            yield f"           | {printable(line)}"


def _value(job: Document, name: str) -> str:
    """A payload or result as JSON; one that is cut is text already."""
    value = job[name]
    return f"{printable(value)}…" if job[f"{name}_cut"] else printable(json.dumps(value, ensure_ascii=False))
