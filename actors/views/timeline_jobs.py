"""Pure: the jobs of a worker as timeline entries.

A job has an entry for its start and one for its end; if nothing happened between them it has one
entry, and many such jobs in a row share one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import merge

import msgspec

from rekindle.worker.plain_text import span

from ..facts.jobs import JobState, JobView
from .timeline_entries import TimelineEntry

MOST_TOLD = 3
"""Up to this many jobs in a row have their own entries."""


class _Mark(msgspec.Struct, frozen=True):
    """One end of a job."""

    at_wall_ms: int
    job: JobView
    is_end: bool


def with_jobs(entries: Iterable[TimelineEntry], jobs: Iterable[JobView]) -> Iterator[TimelineEntry]:
    """The entries, newest first, with the jobs inserted."""
    marks = sorted((mark for job in jobs for mark in _marks(job)), key=_newest_first)
    run: list[_Mark] = []
    placed: Iterator[TimelineEntry | _Mark] = merge(entries, marks, key=lambda each: -each.at_wall_ms)
    for each in placed:
        if isinstance(each, _Mark):
            run.append(each)
            continue
        yield from _told(run)
        run.clear()
        yield each
    yield from _told(run)


def _newest_first(mark: _Mark) -> tuple[int, int, bool]:
    return (-mark.at_wall_ms, -mark.job.id, not mark.is_end)


def _marks(job: JobView) -> Iterator[_Mark]:
    if job.started_at_wall_ms is None:
        return
    yield _Mark(job.started_at_wall_ms, job, is_end=False)
    ended = job.finished_at_wall_ms
    # The job of a dead worker has events of its own.
    if ended is not None and job.state in (JobState.DONE, JobState.ERROR, JobState.CANCELLED):
        yield _Mark(max(ended, job.started_at_wall_ms), job, is_end=True)


def _told(run: list[_Mark]) -> Iterator[TimelineEntry]:
    taken = {mark.job.id for mark in run if not mark.is_end}
    whole = [mark for mark in run if mark.is_end and mark.job.id in taken]
    ids = {mark.job.id for mark in whole}
    together = len(whole) > MOST_TOLD
    for mark in run:
        if mark.job.id not in ids:
            yield _entry(mark, _end_of(mark.job) if mark.is_end else _start_of(mark.job))
        elif mark.is_end and not together:
            yield _entry(mark, _end_of(mark.job))
        elif together and mark is whole[0]:
            yield _entry(mark, _many(whole))


def _entry(mark: _Mark, text: str) -> TimelineEntry:
    generation = mark.job.claimed_generation
    return TimelineEntry(at_wall_ms=mark.at_wall_ms, kind="job", text=text, generation=generation)


def _start_of(job: JobView) -> str:
    attempt = "" if job.attempts <= 1 else f", attempt {job.attempts}"
    return f"started job {job.id} of {job.queue}{attempt}"


def _end_of(job: JobView) -> str:
    took = span((job.finished_at_wall_ms or 0) - (job.started_at_wall_ms or 0))
    if job.state == JobState.DONE:
        return f"completed job {job.id} of {job.queue} in {took}"
    if job.state == JobState.CANCELLED:
        return f"job {job.id} of {job.queue} was cancelled after {took}"
    why = (job.error or "").strip().splitlines()
    return f"job {job.id} of {job.queue} failed after {took}" + (f": {why[0]}" if why else "")


def _many(ends: list[_Mark]) -> str:
    jobs = [mark.job for mark in ends]
    queues = ", ".join(sorted({job.queue for job in jobs}))
    lasted = ends[0].at_wall_ms - min(job.started_at_wall_ms or 0 for job in jobs)
    failed = sum(job.state == JobState.ERROR for job in jobs)
    return f"finished {len(jobs)} jobs of {queues} in {span(lasted)}" + (
        f"; {failed} of them failed" if failed else ""
    )
