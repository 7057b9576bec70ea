"""The handlers of the routes about jobs.

The documents need the `Jobs` port alone, so that the command line can make the same ones while
no supervisor runs.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from ....errors import UnknownJobError
from ....facts.jobs import JobCrash, JobError, JobProgress, JobState, JobView, QueueStats, Unique, all_queues
from ....facts.queues import BatchAdded
from ....ports import Jobs
from ....spec.job_payload import JobSettings, checked_queue, new_jobs
from ....system.queues.new_batch import add_batch
from ...serving.json_values import CommandResult, encode, view, view_type
from ..request_bodies import BatchArguments, EnqueueArguments, InvalidRequestError, UniqueArguments
from ..route import Request

Crash = view_type(JobCrash)
Error = view_type(JobError)
Progress = view_type(JobProgress)
Figures = view_type(QueueStats)


LONGEST_LISTED = 1024
"""How many characters of a payload and a result are in a list."""

LONGEST_SHOWN = 2_000_000
"""How many are in the answer about one job: twice what a new job may have."""

LONGEST_ANSWER = 8_000_000
"""About how many bytes a list may have; the jobs beyond are left off."""

LOT = 50
"""For how many jobs the evidence is read at a time."""


class JobDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One job; payload and result are JSON values, or text if they are cut."""

    id: int
    queue: str
    state: str
    payload: msgspec.Raw
    payload_cut: bool
    """Whether the payload is only the beginning of the text, since the whole is too long for this answer."""
    priority: int
    attempts: int
    crash_count: int
    error_count: int
    max_retries: int | None
    crash_retries: int | None
    unique_key: str | None
    checkpoint: msgspec.Raw
    claimed_by: str | None
    claimed_generation: int | None
    claimed_node: str | None
    """The node of the cluster where it runs, or ran last."""
    created_at_wall_ms: int
    not_before_wall_ms: int
    started_at_wall_ms: int | None
    finished_at_wall_ms: int | None
    toxic_since_wall_ms: int | None
    result: msgspec.Raw
    result_cut: bool
    error: str | None
    timeout_ms: int | None
    retry_delay_ms: int | None
    max_retry_delay_ms: int | None
    expires_at_wall_ms: int | None
    key: str | None
    traceparent: str | None
    waits_for: int | None
    failed_by: int | None
    batch_id: int | None
    batch_counts: msgspec.Raw
    cancel_requested_at_wall_ms: int | None
    errors: list[Error]  # type: ignore[valid-type]
    """Why the latest executions failed, oldest first."""
    progress: Progress | None  # type: ignore[valid-type]


class JobDetailDocument(msgspec.Struct, frozen=True):
    """One job and its crashes."""

    job: JobDocument
    crashes: list[Crash]  # type: ignore[valid-type]


class JobListDocument(msgspec.Struct, frozen=True):
    """Jobs, newest first; each with its crashes, if `evidence` was requested."""

    jobs: list[JobDetailDocument]
    left_off: int = 0
    """How many further jobs matched and are left off, since the answer would be too long."""


class QueuesDocument(msgspec.Struct, frozen=True):
    """The figures of every queue, and their totals."""

    queues: list[Figures]  # type: ignore[valid-type]
    all: Figures  # type: ignore[valid-type]
    served: list[str]
    """The queues that workers serve; a job in any other queue waits until a worker serves it."""


# ── documents ────────────────────────────────────────────────────────────────────────────


def job_list(
    jobs: Jobs, *, queue: str | None, state: str | None, limit: int, evidence: bool
) -> JobListDocument:
    """The jobs that match."""
    if state is not None and state not in tuple(JobState):
        known = ", ".join(JobState)
        raise InvalidRequestError(
            422, "invalid", f"{state[:80]!r} is not a job state; the states are {known}"
        )
    found = jobs.find(queue=queue, state=state, limit=limit, longest=LONGEST_LISTED)
    listed: list[JobDetailDocument] = []
    size = 0
    for begin in range(0, len(found), LOT):
        lot = found[begin : begin + LOT]
        crashes = jobs.crashes([job.id for job in lot]) if evidence else ()
        for job in lot:
            detail = _detail(job, crashes)
            size += len(encode(detail))
            if size > LONGEST_ANSWER and listed:
                return JobListDocument(listed, len(found) - len(listed))
            listed.append(detail)
    return JobListDocument(listed)


def job_detail(jobs: Jobs, job_id: int) -> JobDetailDocument:
    """One job."""
    for job in jobs.named([job_id], longest=LONGEST_SHOWN):
        return _detail(job, jobs.crashes([job_id]))
    raise UnknownJobError(job_id)


def figures(jobs: Jobs, served: Collection[str]) -> QueuesDocument:
    """The figures of every queue that has jobs or is served."""
    found = {stats.queue: stats for stats in jobs.stats()}
    every = [found.get(name) or QueueStats(queue=name) for name in sorted({*found, *served} - {None})]  # type: ignore[type-var]
    return QueuesDocument(view(every), view(all_queues(every)), sorted(served))


def enqueued(
    jobs: Jobs, queue: str, served: Collection[str], given: EnqueueArguments
) -> dict[str, list[int]]:
    """Add jobs to a queue, all or none; returns their numbers, and which of them were there already.

    A job that another program adds with the same key at the same moment may count as added here.
    """
    checked_queue(queue, served)
    before = () if given.unique is None else jobs.find(queue=queue, limit=1, longest=0)
    latest = max((job.id for job in before), default=0)
    ids = jobs.add(queue, new_jobs(given.payloads, time.time_ns() // 1_000_000, **_settings(given)))
    return {"ids": list(ids), "existing": list(dict.fromkeys(id_ for id_ in ids if id_ <= latest))}


def batched(jobs: Jobs, queue: str, served: Collection[str], given: BatchArguments) -> BatchAdded:
    """Add jobs to a queue as a batch, all or none, and one that runs when all of them have ended."""
    return add_batch(jobs, served, queue, given.payloads, given.then, given.then_queue, **_settings(given))


def _settings(given: EnqueueArguments) -> JobSettings:
    return {
        "priority": given.priority,
        "delay_s": given.delay_s,
        "max_retries": given.max_retries,
        "crash_retries": given.crash_retries,
        "unique": _unique(given.unique),
        "error_retries": given.error_retries,
        "retry_delay_s": given.retry_delay_s,
        "max_retry_delay_s": given.max_retry_delay_s,
        "timeout_s": given.timeout_s,
        "expires_in_s": given.expires_in_s,
        "expires_at": given.expires_at,
        "key": given.key,
        "after": given.after,
        "traceparent": given.traceparent,
    }


def _unique(given: UniqueArguments | None) -> Unique | None:
    if given is None:
        return None
    states = {} if given.states is None else {"states": tuple(given.states)}
    return Unique(given.key, given.for_s, **states)


def _detail(job: JobView, crashes: Sequence[JobCrash]) -> JobDetailDocument:
    sent = {
        **view(job),
        "payload": _value(job.payload, cut=job.payload_cut),
        "result": _value(job.result, cut=job.result_cut),
        "checkpoint": _value(job.checkpoint, cut=False),
        "batch_counts": _value(job.batch_counts, cut=False),
    }
    return JobDetailDocument(
        JobDocument(**sent), view([crash for crash in crashes if crash.job_id == job.id])
    )


def _value(text: str | None, *, cut: bool) -> msgspec.Raw:
    """JSON text as it is, checked and not decoded; text that is cut or is not JSON as a string."""
    if text is None:
        return msgspec.Raw(b"null")
    try:
        if not cut:
            return msgspec.json.decode(text, type=msgspec.Raw)
    except (ValueError, RecursionError):
        pass
    return msgspec.Raw(encode(text))


# ── handlers ─────────────────────────────────────────────────────────────────────────────


def listing(request: Request) -> object:
    given = request.arguments
    return job_list(
        request.operator.jobs,
        queue=given.queue,
        state=given.state,
        limit=given.limit,
        evidence=given.evidence,
    )


def detail(request: Request) -> object:
    return job_detail(request.operator.jobs, _number(request))


def queues(request: Request) -> object:
    return figures(request.operator.jobs, request.operator.queues)


def enqueue(request: Request) -> object:
    operator = request.operator
    return CommandResult(detail=enqueued(operator.jobs, request.target, operator.queues, request.arguments))


def enqueue_batch(request: Request) -> object:
    operator = request.operator
    added = batched(operator.jobs, request.target, operator.queues, request.arguments)
    return CommandResult(detail=batch_detail(added))


def batch_detail(added: BatchAdded) -> dict[str, Any]:
    """What the answer says of a new batch."""
    return {"id": added.id, "ids": list(added.job_ids), "callback_id": added.callback_id}


def retry(request: Request) -> object:
    request.operator.jobs.retry([_number(request)])
    return CommandResult()


def cancel(request: Request) -> object:
    (state,) = request.operator.jobs.cancel([_number(request)])
    return CommandResult(detail={"state": state.value})


def drop(request: Request) -> object:
    request.operator.jobs.drop([_number(request)])
    return CommandResult()


def _number(request: Request) -> int:
    if not request.target.isdecimal() or len(request.target) > 18:
        raise InvalidRequestError(422, "invalid", f"{request.target[:80]!r} is not a job number")
    return int(request.target)
