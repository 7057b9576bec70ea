"""Pure: the numbers of traces and spans.

They are derived, not drawn: the span of a job can point to the span of the life that executed it,
also if another run of the supervisor sent that one, and a span that is sent twice is the same span.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from rekindle.worker.jobs.traceparent import parsed

_LOW_BITS = 64


class SpanPlace(NamedTuple):
    """A span's trace and its own number."""

    trace_id: int
    span_id: int


class Parent(NamedTuple):
    """The span of another program that a job was enqueued in."""

    place: SpanPlace
    is_sampled: bool


def life_place(origin: str, component_id: str, generation: int) -> SpanPlace:
    """The span of one life of a worker, which begins a trace."""
    return _place(origin, "life", component_id, generation)


def job_place(origin: str, job_id: int, ended_at_wall_ms: int, parent: Parent | None) -> SpanPlace:
    """The span of a job; in the trace of its parent, if it has one. A job that is retried has another."""
    own = _place(origin, "job", job_id, ended_at_wall_ms)
    return own if parent is None else SpanPlace(parent.place.trace_id, own.span_id)


def execution_place(
    origin: str, job: SpanPlace, job_id: int, attempt: int, ended_at_wall_ms: int
) -> SpanPlace:
    """The span of one execution, in the trace of its job. An attempt of a job that is retried has another."""
    own = _place(origin, "execution", job_id, attempt, ended_at_wall_ms)
    return SpanPlace(job.trace_id, own.span_id)


def parent_of(traceparent: str | None) -> Parent | None:
    """The parent that a `traceparent` names; None without a valid one."""
    found = None if traceparent is None else parsed(traceparent)
    if found is None:
        return None
    return Parent(SpanPlace(int(found.trace_id, 16), int(found.span_id, 16)), found.is_sampled)


def is_in_sample(place: SpanPlace, share: float) -> bool:
    """Whether a trace is sent, decided by its number: all spans of a trace agree."""
    return (place.trace_id & ((1 << _LOW_BITS) - 1)) < share * (1 << _LOW_BITS)


def _place(*parts: object) -> SpanPlace:
    digest = hashlib.sha256("\0".join(map(str, parts)).encode()).digest()
    # Zero is invalid, and as likely as it sounds.
    return SpanPlace(int.from_bytes(digest[:16]) or 1, int.from_bytes(digest[16:24]) or 1)
