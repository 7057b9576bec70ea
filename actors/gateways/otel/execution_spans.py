"""Pure: a span for each execution of a job, as a part of the job's own span.

An execution ended with an exception, with its worker, or with the job. One that was interrupted by the end of
the supervisor has no record, and so no span.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ...deaths.death import signal_name
from ...facts.jobs import JobCrash, JobState, JobView
from ...views.redaction import masked_text
from .finished_span import FinishedSpan, Value, without_nothing
from .trace_ids import Parent, SpanPlace, execution_place, life_place

_EXECUTED = frozenset({JobState.DONE, JobState.CANCELLED, JobState.ERROR})
"""States in which a job may have ended with an execution that is recorded nowhere else."""


class _Execution(NamedTuple):
    attempt: int
    began_wall_ms: int | None
    ended_wall_ms: int
    worker: str | None
    generation: int | None = None
    error: str | None = None
    crash: JobCrash | None = None


def execution_spans(
    job: JobView, crashes: Sequence[JobCrash], place: SpanPlace, ended_wall_ms: int, origin: str
) -> tuple[FinishedSpan, ...]:
    """The spans of the executions that are known, the first one first.

    Args:
        job: a job that has ended.
        crashes: the deaths of its workers.
        place: the job's own span.
        ended_wall_ms: when the job ended.
        origin: what distinguishes this store from every other one.
    """
    found = {each.attempt: each for each in _executions(job, crashes, ended_wall_ms)}
    spans: list[FinishedSpan] = []
    earliest = job.created_at_wall_ms
    for each in sorted(found.values()):
        spans.append(_span(job, each, earliest, Parent(place, is_sampled=True), origin))
        earliest = each.ended_wall_ms
    return tuple(spans)


def _executions(job: JobView, crashes: Sequence[JobCrash], ended_wall_ms: int) -> Iterator[_Execution]:
    """Every execution; of one attempt the last is the best known."""
    for error in job.errors:
        at = (error.began_at_wall_ms, error.at_wall_ms)
        yield _Execution(error.attempt, *at, error.component_id or None, error=_first_line(error.error))
    if job.started_at_wall_ms is not None and job.state in _EXECUTED:
        why = _first_line(job.error or "") if job.state == JobState.ERROR else None
        by = (job.claimed_by, job.claimed_generation)
        yield _Execution(job.attempts, job.started_at_wall_ms, ended_wall_ms, *by, why)
    for crash in crashes:
        life = (crash.component_id, crash.generation)
        why = f"its worker died: {crash.cause}"
        yield _Execution(crash.attempt, crash.began_at_wall_ms, crash.at_wall_ms, *life, why, crash)


def _first_line(error: str) -> str:
    return masked_text(error.partition("\n")[0])


def _span(
    job: JobView, execution: _Execution, earliest_wall_ms: int, parent: Parent, origin: str
) -> FinishedSpan:
    ended = execution.ended_wall_ms
    worker, generation, crash = execution.worker, execution.generation, execution.crash
    began = earliest_wall_ms if execution.began_wall_ms is None else execution.began_wall_ms
    signal = None if crash is None or crash.signal is None else signal_name(crash.signal)
    attributes: dict[str, Value | None] = {
        "messaging.system": "rekindle",
        "messaging.destination.name": job.queue,
        "rekindle.job.id": job.id,
        "rekindle.job.attempt": execution.attempt,
        "rekindle.worker.id": worker,
        "rekindle.worker.generation": generation,
        "rekindle.death": None if crash is None else crash.cause,
        "process.exit.code": None if crash is None else crash.exit_code,
        "rekindle.exit.signal": signal,
    }
    is_known = worker is not None and generation is not None
    return FinishedSpan(
        name=f"execution of {job.queue}",
        place=execution_place(origin, parent.place, job.id, execution.attempt, ended),
        parent=parent,
        began_wall_ms=min(began, ended),
        ended_wall_ms=ended,
        attributes=without_nothing(attributes),
        links=(life_place(origin, worker or "", generation or 0),) if is_known else (),
        error=execution.error,
        is_consumer=True,
    )
