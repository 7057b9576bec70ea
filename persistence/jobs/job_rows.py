"""Pure: decodes the rows of the queues."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from rekindle.actors.facts.jobs import (
    JobCrash,
    JobError,
    JobProgress,
    JobView,
    QueueStats,
    queue_stats,
    sound_count,
)

T = TypeVar("T")

_CUT = {"payload_cut": "payload", "result_cut": "result"}
_FIELDS = tuple(name for name in JobView.__struct_fields__ if name not in _CUT)
_COUNTS = ("attempts", "crash_count", "error_count")


def view(row: Any, longest: int | None = None) -> JobView:
    """The job of a row; an invalid count is shown as 0, as it is counted.

    With `longest`, the row has one character more of a payload or result that is longer.
    """
    values = {name: getattr(row, name) for name in _FIELDS}
    values.update({name: sound_count(values[name]) or 0 for name in _COUNTS})
    values |= {"errors": job_errors(values["errors"]), "progress": job_progress(values["progress"])}
    for flag, name in _CUT.items():
        if longest is not None and len(values[name] or "") > longest:
            values |= {name: values[name][:longest], flag: True}
    return JobView(**values)


def crash(row: Any) -> JobCrash:
    """The evidence of a row."""
    return JobCrash(
        job_id=row.job_id,
        attempt=row.attempt,
        at_wall_ms=row.at_wall_ms,
        component_id=row.component_id,
        generation=row.generation,
        cause=row.cause,
        exit_code=row.exit_code,
        signal=row.signal,
        output=_lines(row.output),
        began_at_wall_ms=row.began_at_wall_ms,
    )


def queues(rows: Iterable[Any]) -> tuple[QueueStats, ...]:
    """The figures of each queue, from one row per queue and state."""
    counts: dict[str, dict[str, int]] = defaultdict(dict)
    busy_ms: dict[str, float] = defaultdict(float)
    for row in rows:
        counts[row.queue][row.state] = int(row.many)
        busy_ms[row.queue] += float(row.busy_ms or 0)
    return tuple(queue_stats(queue, counts=counts[queue], busy_ms=busy_ms[queue]) for queue in counts)


def job_errors(text: str | None) -> tuple[JobError, ...]:
    """The stored errors of a job; none if they are invalid."""
    return _decoded(text, tuple[JobError, ...]) or ()


def job_progress(text: str | None) -> JobProgress | None:
    """The stored progress of a job; None if it is invalid."""
    return _decoded(text, JobProgress)


def _decoded(text: str | None, kind: type[T]) -> T | None:
    try:
        return None if text is None else msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, RecursionError):
        return None


def _lines(text: str) -> tuple[str, ...]:
    try:
        lines = json.loads(text)
    except ValueError:
        return (text,)
    return tuple(str(line) for line in lines) if isinstance(lines, list) else (text,)
