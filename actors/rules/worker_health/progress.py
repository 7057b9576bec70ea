"""Pure: whether a worker's work makes progress, beside whether the worker is alive.

Heartbeats come from a side thread and continue when the work hangs. Progress is a change of the
mark or of the job. A worker that reports its jobs must make progress while it holds one, and
none in between; one that never reports a job must make progress from its first mark on. A
worker that reports to be busy until some time has at least that long.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from ...deaths.death import Job
from ...facts.frames import Frame
from ...spec.policies.health_policy import HealthPolicy


class Progress(msgspec.Struct, frozen=True):
    """The last mark and job of one incarnation."""

    mark: Job | None = None
    job: Job | None = None
    moved: float | None = None
    """When it last made progress, in monotonic seconds; None while none is expected."""
    busy_until: float | None = None
    names_jobs: bool = False


def after_frame(progress: Progress, frame: Frame, now: float) -> Progress:
    """The progress after a frame."""
    job, mark = frame.job, frame.progress
    names_jobs = progress.names_jobs or job is not None
    expected = job is not None or (not names_jobs and mark is not None)
    same = mark == progress.mark and job == progress.job
    moved = progress.moved if same and progress.moved is not None else now
    busy_until = None if frame.busy_for_s is None else now + frame.busy_for_s
    return Progress(mark, job, moved if expected else None, busy_until, names_jobs)


def deadline(progress: Progress, policy: HealthPolicy) -> float | None:
    """By when it must make progress; None: never."""
    if policy.progress_timeout_s is None or progress.moved is None:
        return None
    due = progress.moved + policy.progress_timeout_s
    return due if progress.busy_until is None else max(due, progress.busy_until)


def granted(progress: Progress, now: float) -> Progress:
    """The monitor was away or the worker paused: start the time over."""
    return progress if progress.moved is None else replace(progress, moved=now)


def stuck(progress: Progress, policy: HealthPolicy, now: float) -> str | None:
    """How long its work made no progress, in words, if that is too long."""
    due = deadline(progress, policy)
    if due is None or now < due or progress.moved is None:
        return None
    where = "" if progress.mark is None else f" since mark {progress.mark!r:.80}"
    what = "" if progress.job is None else f" of job {progress.job!r:.80}"
    return (
        f"no progress{what}{where} for {now - progress.moved:.3g} s (limit {policy.progress_timeout_s:g} s)"
    )
