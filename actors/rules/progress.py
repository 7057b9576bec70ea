"""Pure: whether a worker's work moves on, beside whether the worker is alive.

Heartbeats come from a side thread and go on when the work hangs. What moves is the mark of
progress and the job. A worker that names its jobs is expected to move while it holds one, and
rests in between; one that never names any is expected to move from its first mark on. Saying
that it is busy for a while puts the deadline off until then.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from ..deaths.death import Job
from ..facts.frames import Frame
from ..spec.worker_spec import HealthPolicy


class Progress(msgspec.Struct, frozen=True):
    """What the work of one incarnation last showed."""

    mark: Job | None = None
    job: Job | None = None
    moved: float | None = None
    """When it last moved, in monotonic seconds; None while nothing is expected of it."""
    busy_until: float | None = None
    names_jobs: bool = False


def heard(progress: Progress, frame: Frame, now: float) -> Progress:
    """What a frame adds."""
    job, mark = frame.job, frame.progress
    names_jobs = progress.names_jobs or job is not None
    expected = job is not None or (not names_jobs and mark is not None)
    same = mark == progress.mark and job == progress.job
    moved = progress.moved if same and progress.moved is not None else now
    busy_until = None if frame.busy_for_s is None else now + frame.busy_for_s
    return Progress(mark, job, moved if expected else None, busy_until, names_jobs)


def deadline(progress: Progress, policy: HealthPolicy) -> float | None:
    """By when it must have moved; None is never."""
    if policy.progress_timeout_s is None or progress.moved is None:
        return None
    due = progress.moved + policy.progress_timeout_s
    return due if progress.busy_until is None else max(due, progress.busy_until)


def granted(progress: Progress, now: float) -> Progress:
    """The observer was away, or the worker paused: what did not move until now proves nothing."""
    return progress if progress.moved is None else replace(progress, moved=now)


def stuck(progress: Progress, policy: HealthPolicy, now: float) -> str | None:
    """How long its work has not moved, in words, if that is too long."""
    due = deadline(progress, policy)
    if due is None or now < due or progress.moved is None:
        return None
    where = "" if progress.mark is None else f" since mark {progress.mark!r:.80}"
    what = "" if progress.job is None else f" of job {progress.job!r:.80}"
    return (
        f"no progress{what}{where} for {now - progress.moved:.3g} s (limit {policy.progress_timeout_s:g} s)"
    )
