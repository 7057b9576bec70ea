"""What the routes of jobs answer, and how the queues are asked for it.

The documents are made from the `Jobs` port alone, so that the command line can make the same ones
where no supervisor runs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from ...facts.jobs import JobCrash, JobState, JobView, QueueStats, all_queues
from ...ports import Jobs
from ...spec.job_payload import checked_queue, new_job, payload_text
from ..serving.json_values import Outcome, view, view_type
from .request_bodies import EnqueueArguments, InvalidRequestError
from .route import Asked

Crash = view_type(JobCrash)
Figures = view_type(QueueStats)


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One job; its payload and result are the JSON values themselves."""

    id: int
    queue: str
    state: str
    payload: Any
    priority: int
    attempts: int
    crash_count: int
    error_count: int
    max_retries: int | None
    claimed_by: str | None
    claimed_generation: int | None
    created_at_wall_ms: int
    not_before_wall_ms: int
    started_at_wall_ms: int | None
    finished_at_wall_ms: int | None
    toxic_since_wall_ms: int | None
    result: Any
    error: str | None


class JobDetail(msgspec.Struct, frozen=True):
    """One job, and the evidence against it."""

    job: Job
    crashes: list[Crash]  # type: ignore[valid-type]


class JobList(msgspec.Struct, frozen=True):
    """Jobs, the newest first; each with the evidence against it, if that was asked for."""

    jobs: list[JobDetail]


class Queues(msgspec.Struct, frozen=True):
    """The figures of every queue, and of all of them together."""

    queues: list[Figures]  # type: ignore[valid-type]
    all: Figures  # type: ignore[valid-type]
    served: list[str]
    """The queues that workers serve; a job in another one waits for ever."""


# ── documents ────────────────────────────────────────────────────────────────────────────


def job_list(jobs: Jobs, *, queue: str | None, state: str | None, limit: int, evidence: bool) -> JobList:
    """Some jobs."""
    if state is not None and state not in tuple(JobState):
        known = ", ".join(JobState)
        raise InvalidRequestError(422, "invalid", f"{state[:80]!r} is no state of a job; there are {known}")
    found = jobs.find(queue=queue, state=state, limit=limit)
    crashes = jobs.crashes([job.id for job in found]) if evidence else ()
    return JobList([_detail(job, crashes) for job in found])


def job_detail(jobs: Jobs, job_id: int) -> JobDetail:
    """One job."""
    return _detail(jobs.get(job_id), jobs.crashes([job_id]))


def figures(jobs: Jobs, served: Collection[str]) -> Queues:
    """The figures of every queue that has jobs, or that is served."""
    found = {stats.queue: stats for stats in jobs.stats()}
    every = [found.get(name) or QueueStats(queue=name) for name in sorted({*found, *served} - {None})]  # type: ignore[type-var]
    return Queues(view(every), view(all_queues(every)), sorted(served))


def enqueued(jobs: Jobs, queue: str, served: Collection[str], given: EnqueueArguments) -> tuple[int, ...]:
    """Put jobs into a queue, all or none; their numbers."""
    checked_queue(queue, served)
    now = time.time_ns() // 1_000_000
    return jobs.add(
        queue,
        [
            new_job(
                payload_text(payload),
                now,
                priority=given.priority,
                delay_s=given.delay_s,
                max_retries=given.max_retries,
            )
            for payload in given.payloads
        ],
    )


def _detail(job: JobView, crashes: Sequence[JobCrash]) -> JobDetail:
    sent = {**view(job), "payload": _value(job.payload), "result": _value(job.result)}
    return JobDetail(Job(**sent), view([crash for crash in crashes if crash.job_id == job.id]))


def _value(text: str | None) -> Any:
    """What JSON text says; text that is none stands for itself."""
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        return text


# ── routes ───────────────────────────────────────────────────────────────────────────────


def listing(asked: Asked) -> object:
    given = asked.arguments
    return job_list(
        asked.operator.jobs,
        queue=given.queue,
        state=given.state,
        limit=given.limit,
        evidence=given.evidence,
    )


def detail(asked: Asked) -> object:
    return job_detail(asked.operator.jobs, _number(asked))


def queues(asked: Asked) -> object:
    return figures(asked.operator.jobs, asked.operator.queues)


def enqueue(asked: Asked) -> object:
    operator = asked.operator
    ids = enqueued(operator.jobs, asked.target, operator.queues, asked.arguments)
    return Outcome(detail={"ids": list(ids)})


def retry(asked: Asked) -> object:
    asked.operator.jobs.retry([_number(asked)])
    return Outcome()


def drop(asked: Asked) -> object:
    asked.operator.jobs.drop([_number(asked)])
    return Outcome()


def _number(asked: Asked) -> int:
    if not asked.target.isdecimal() or len(asked.target) > 18:
        raise InvalidRequestError(422, "invalid", f"a job has a number, not {asked.target[:80]!r}")
    return int(asked.target)
