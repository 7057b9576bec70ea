"""Pure: the span of a job, from its row and the crashes of its workers.

It reaches from the moment at which the job was added to its end, so that a trace shows how long it
waited. Its executions are spans within it; they, its errors and its crashes are moments in it, too, and it
links to the lives of the workers that executed it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...deaths.death import signal_name
from ...facts.jobs import JobCrash, JobError, JobState, JobView
from ...views.redaction import masked_text
from .execution_spans import execution_spans
from .finished_span import FinishedSpan, SpanEvent, Value, without_nothing
from .trace_ids import SpanPlace, job_place, life_place, parent_of

ENDED = frozenset({JobState.DONE, JobState.ERROR, JobState.TOXIC, JobState.CANCELLED, JobState.EXPIRED})
_FAILED = frozenset({JobState.ERROR, JobState.TOXIC})


def ended_at(job: JobView) -> int | None:
    """When the job ended; None if it has not."""
    if job.state not in ENDED:
        return None
    return job.finished_at_wall_ms or job.toxic_since_wall_ms


def job_span(job: JobView, crashes: Sequence[JobCrash], origin: str) -> FinishedSpan | None:
    """The span of a job that has ended; None for one that has not."""
    ended = ended_at(job)
    if ended is None:
        return None
    parent = parent_of(job.traceparent)
    own = [each for each in crashes if each.job_id == job.id]
    last = own[-1] if own and job.state == JobState.TOXIC else None
    place = job_place(origin, job.id, ended, parent)
    attributes: dict[str, Value | None] = {
        "messaging.system": "rekindle",
        "messaging.operation.type": "process",
        "messaging.destination.name": job.queue,
        "messaging.message.id": str(job.id),
        "rekindle.job.id": job.id,
        "rekindle.job.state": job.state,
        "rekindle.job.attempts": job.attempts,
        "rekindle.job.crashes": len(own),
        "rekindle.job.errors": job.error_count,
        "rekindle.job.waited_ms": _waited(job),
        "rekindle.worker.id": job.claimed_by,
        "rekindle.worker.generation": job.claimed_generation,
        "rekindle.death": None if last is None else last.cause,
    }
    return FinishedSpan(
        name=f"job {job.queue}",
        place=place,
        parent=parent,
        began_wall_ms=min(job.created_at_wall_ms, ended),
        ended_wall_ms=ended,
        attributes=without_nothing(attributes),
        moments=tuple(sorted(_moments(job, own), key=lambda each: each.at_wall_ms)),
        links=_lives(job, own, origin),
        error=_error(job, last),
        is_consumer=True,
        parts=execution_spans(job, own, place, ended, origin),
    )


def _waited(job: JobView) -> int | None:
    """How long it waited for its only execution; of several it is not known."""
    if job.started_at_wall_ms is None or job.attempts != 1:
        return None
    return max(0, job.started_at_wall_ms - job.created_at_wall_ms)


def _moments(job: JobView, crashes: Sequence[JobCrash]) -> list[SpanEvent]:
    found = [_error_moment(each) for each in job.errors]
    found += [_crash_moment(each) for each in crashes]
    if job.started_at_wall_ms is not None:
        attempt = {"rekindle.job.attempt": job.attempts}
        found.append(SpanEvent("execution began", job.started_at_wall_ms, attempt))
    return found


def _error_moment(error: JobError) -> SpanEvent:
    shown: dict[str, Value] = {
        "rekindle.job.attempt": error.attempt,
        "exception.message": _short(error.error),
    }
    return SpanEvent("error", error.at_wall_ms, shown)


def _crash_moment(crash: JobCrash) -> SpanEvent:
    shown: dict[str, Value | None] = {
        "rekindle.job.attempt": crash.attempt,
        "rekindle.worker.id": crash.component_id,
        "rekindle.worker.generation": crash.generation,
        "rekindle.death": crash.cause,
        "process.exit.code": crash.exit_code,
        "rekindle.exit.signal": None if crash.signal is None else signal_name(crash.signal),
    }
    return SpanEvent("worker died", crash.at_wall_ms, without_nothing(shown))


def _lives(job: JobView, crashes: Sequence[JobCrash], origin: str) -> tuple[SpanPlace, ...]:
    lives = [(each.component_id, each.generation) for each in crashes]
    if job.claimed_by is not None and job.claimed_generation is not None:
        lives.append((job.claimed_by, job.claimed_generation))
    return tuple(life_place(origin, *each) for each in dict.fromkeys(lives))


def _error(job: JobView, last: JobCrash | None) -> str | None:
    if job.state not in _FAILED:
        return None
    return _short(job.error or (f"its worker died: {last.cause}" if last else job.state))


def _short(error: str) -> str:
    return masked_text(error.partition("\n")[0])
