"""Pure: jobs as views show them, and the verdict on a job whose worker died.

    pending ─claimed─▶ running ─result─▶ done
     │ ▲                 │ exception, timeout ─▶ pending (its own retries), then error
     │ └── requeued ◀────┤ worker died, budget left
     │                   ├ worker died, budget spent ─▶ toxic
     │                   └ cancelled: asked, then its process is ended ─▶ cancelled
     └ cancelled ─▶ cancelled; not begun in time ─▶ expired

A claim is counted before the execution begins, and a result is taken only from the claim that is
still in force: execution is at least once, recording exactly once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

import msgspec
from msgspec.structs import replace

from ..deaths.death import Action, Cause
from .queues import QueuePause

DEFAULT_CRASH_RETRIES = 2
"""How often a job is requeued after a crash, unless the worker's policy sets another number."""

BLAMELESS = frozenset({Cause.SUPERVISOR_LOST, Action.HELD})
"""Causes of a death, and decisions on it, for which no job is blamed: the supervisor was lost, or the
breaker of the worker was open, so that a dependency was unavailable."""

CURRENT_RUN = "system_mark"
"""The setting with the mark of the latest run: only its workers may claim jobs (`worker/jobs/sql.py`)."""

LAST_LINES = 20
"""How many lines of a dead worker's output are kept as evidence."""

SERVED_QUEUES = "served_queues"
"""The setting with the names of the queues that the latest run's workers serve, as JSON."""


class JobState(StrEnum):
    """The state of a job."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    ERROR = "error"
    TOXIC = "toxic"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    """It had not begun when its time was over."""
    WAITING = "waiting"
    """It comes after other jobs, or at the end of a batch."""


RETRIABLE = (JobState.TOXIC, JobState.ERROR, JobState.CANCELLED, JobState.EXPIRED)
"""States from which an operator may requeue a job."""

OPEN = (JobState.PENDING, JobState.RUNNING, JobState.WAITING)
"""States of jobs that have not ended."""

CANCELLABLE = OPEN

FINISHED = (JobState.DONE, JobState.ERROR, JobState.CANCELLED, JobState.EXPIRED)
"""States whose jobs are deleted after a while; a toxic one stays as long as the history."""


def ended_words(state: str) -> str:
    """How a job ended, after its subject: `is toxic`, `has failed`."""
    return {"error": "has failed", "expired": "has expired"}.get(state, f"is {state}")


def refused_cancellation(job_id: int, state: str) -> str | None:
    """Why a job in this state cannot be cancelled; None if it can."""
    if state in CANCELLABLE:
        return None
    return f"job {job_id} {ended_words(state)} already: only a job that has not ended can be cancelled"


def refused_drop(job_id: int) -> str:
    """Why a job that others wait for cannot be deleted."""
    return f"job {job_id} cannot be dropped: others wait for its end; cancel it instead"


def refused_retry(job_id: int, state: str) -> str | None:
    """Why a job in this state cannot be requeued; None if it can."""
    if state in RETRIABLE:
        return None
    return f"job {job_id} is {state}: only a job that failed, is toxic, was cancelled or expired is retried"


class JobError(msgspec.Struct, frozen=True, kw_only=True):
    """Why one execution of a job failed."""

    attempt: int
    at_wall_ms: int
    component_id: str
    error: str
    began_at_wall_ms: int | None = None
    """When that execution began; None: an older version stored it."""


class JobProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a job is, as it reported last."""

    done: float | None = None
    total: float | None = None
    note: str = ""
    at_wall_ms: int = 0


class JobView(msgspec.Struct, frozen=True, kw_only=True):
    """One job.

    `payload`, `result` and `checkpoint` are JSON text, or its beginning; `payload_value`, `result_value`
    and `checkpoint_value` are what it stands for.
    """

    id: int
    queue: str
    state: str
    payload: str
    priority: int
    """Smaller ones first."""
    attempts: int
    crash_count: int
    error_count: int
    max_retries: int | None
    """After exceptions; None: the worker's policy decides."""
    claimed_by: str | None
    """The worker that executes it, or did last."""
    claimed_generation: int | None
    created_at_wall_ms: int
    not_before_wall_ms: int
    started_at_wall_ms: int | None
    finished_at_wall_ms: int | None
    toxic_since_wall_ms: int | None
    result: str | None
    error: str | None
    crash_retries: int | None = None
    """After crashes; None: the worker's policy decides."""
    unique_key: str | None = None
    checkpoint: str | None = None
    """How far an execution came, as JSON text: the next one continues there."""
    timeout_ms: int | None = None
    """How long one execution may take."""
    retry_delay_ms: int | None = None
    """Before the first retry after an exception; None: the worker's policy decides."""
    max_retry_delay_ms: int | None = None
    expires_at_wall_ms: int | None = None
    """A job that has not begun by then never runs."""
    cancel_requested_at_wall_ms: int | None = None
    """Since when a running job is asked to end."""
    errors: tuple[JobError, ...] = ()
    """Of the latest executions that failed, oldest first."""
    progress: JobProgress | None = None
    key: str | None = None
    """What the limits of its queue for a key count together."""
    waits_for: int | None = None
    """How many jobs that it comes after are not done; None: it comes after none."""
    failed_by: int | None = None
    """The job because of which it was cancelled."""
    batch_id: int | None = None
    batch_counts: str | None = None
    """How the jobs of a batch ended, as JSON text, for the job at its end."""
    traceparent: str | None = None
    """The trace in which it was enqueued, as W3C Trace Context has it."""
    claimed_node: str | None = None
    """The node of a cluster where it is executed, or was last."""
    payload_cut: bool = False
    """Whether `payload` is only the beginning, because a caller asked for no more."""
    result_cut: bool = False

    @property
    def payload_value(self) -> Any:
        """The payload as a Python value; None if it is cut."""
        return None if self.payload_cut else _value(self.payload)

    @property
    def result_value(self) -> Any:
        """What the job returned, as a Python value; None if there is nothing, or it is cut."""
        return None if self.result_cut else _value(self.result)

    @property
    def checkpoint_value(self) -> Any:
        """How far an execution came, as a Python value."""
        return _value(self.checkpoint)


def _value(text: str | None) -> Any:
    """The value of JSON text; the text itself if it is not JSON."""
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        return text


class JobCrash(msgspec.Struct, frozen=True, kw_only=True):
    """A worker died while it executed the job."""

    job_id: int
    attempt: int
    at_wall_ms: int
    component_id: str
    generation: int
    cause: str
    exit_code: int | None
    signal: int | None
    output: tuple[str, ...]
    """The last lines that the worker wrote."""
    began_at_wall_ms: int | None = None
    """When that execution began; None: an older version stored it."""


class Unique(msgspec.Struct, frozen=True):
    """Which jobs count as the same: no second one is added to the queue while there is a first."""

    key: str | None = None
    """None: its payload, so that jobs with equal payloads are the same."""
    for_s: float = 0.0
    """How long after it was added the first one stands in the way of a second; it must be given."""
    states: tuple[str, ...] = (JobState.PENDING, JobState.RUNNING, JobState.DONE, JobState.WAITING)
    """In which states it does."""


class NewJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job to be put into a queue."""

    payload: str
    """JSON text."""
    priority: int = 0
    not_before_wall_ms: int | None = None
    """None: at once."""
    max_retries: int | None = None
    crash_retries: int | None = None
    unique: Unique | None = None
    timeout_ms: int | None = None
    retry_delay_ms: int | None = None
    max_retry_delay_ms: int | None = None
    expires_at_wall_ms: int | None = None
    key: str | None = None
    """What the limits of its queue for a key count together."""
    after: tuple[int, ...] = ()
    """The jobs that must be done before it."""
    traceparent: str | None = None


class JobSettled(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome for one job whose worker ended."""

    job_id: int
    queue: str
    component_id: str
    generation: int
    state: JobState
    crash_count: int
    counted: bool
    """Whether the end was a crash, which counts against the job."""
    timed_out: bool = False
    """Whether the worker was ended because the job took too long."""


class QueueStats(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a queue and its timing."""

    queue: str | None
    """None: all queues together."""
    pending: int = 0
    running: int = 0
    completed: int = 0
    errors: int = 0
    toxic: int = 0
    cancelled: int = 0
    expired: int = 0
    waiting: int = 0
    average_s: float = 0.0
    """Of a completed job, from its last start to its end."""
    eta_s: float = 0.0
    """Until all pending jobs are done, by as many workers as are busy now."""
    pause: QueuePause | None = None
    """None: it is not paused."""


def queue_stats(queue: str, *, counts: Mapping[str, int], busy_ms: float) -> QueueStats:
    """The figures of one queue, from the number of jobs in each state and the time of the done ones."""
    completed, running = counts.get(JobState.DONE, 0), counts.get(JobState.RUNNING, 0)
    pending = counts.get(JobState.PENDING, 0)
    average = busy_ms / completed / 1000 if completed else 0.0
    return QueueStats(
        queue=queue,
        pending=pending,
        running=running,
        completed=completed,
        errors=counts.get(JobState.ERROR, 0),
        toxic=counts.get(JobState.TOXIC, 0),
        cancelled=counts.get(JobState.CANCELLED, 0),
        expired=counts.get(JobState.EXPIRED, 0),
        waiting=counts.get(JobState.WAITING, 0),
        average_s=average,
        eta_s=average * pending / max(1, running),
    )


def with_pauses(stats: Iterable[QueueStats], pauses: Iterable[QueuePause]) -> tuple[QueueStats, ...]:
    """The figures of each queue with its pause, by name; a paused queue without jobs has figures too."""
    known = {each.queue: each for each in stats if each.queue is not None}
    for pause in pauses:
        known[pause.queue] = replace(known.get(pause.queue, QueueStats(queue=pause.queue)), pause=pause)
    return tuple(known[name] for name in sorted(known))


def all_queues(stats: Iterable[QueueStats]) -> QueueStats:
    """All queues together: sums, the average weighted by completed jobs, the longest estimate."""
    each = tuple(stats)
    completed = sum(one.completed for one in each)
    spent = sum(one.average_s * one.completed for one in each)
    return QueueStats(
        queue=None,
        pending=sum(one.pending for one in each),
        running=sum(one.running for one in each),
        completed=completed,
        errors=sum(one.errors for one in each),
        toxic=sum(one.toxic for one in each),
        cancelled=sum(one.cancelled for one in each),
        expired=sum(one.expired for one in each),
        waiting=sum(one.waiting for one in each),
        average_s=spent / completed if completed else 0.0,
        eta_s=max((one.eta_s for one in each), default=0.0),
    )


def served_queues(stored: str | None) -> tuple[str, ...]:
    """The names in the setting `SERVED_QUEUES`; empty if it is invalid."""
    try:
        names = json.loads(stored or "[]")
    except ValueError:
        return ()
    return tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else ()


# ── The job of a dead worker ─────────────────────────────────────────────────────────────


class ErrorRetries(msgspec.Struct, frozen=True):
    """How often a worker's jobs are retried after an error, and after which delays."""

    retries: int = 0
    delay_s: float = 5.0
    max_delay_s: float = 300.0


class Verdict(msgspec.Struct, frozen=True):
    """The job's new state and count; `error` says why it is not tried again, or what went wrong."""

    state: JobState
    crash_count: int
    error: str | None = None
    timed_out: bool = False
    """It is an error of this execution."""
    retry_in_s: float = 0.0


def sound_count(stored: object) -> int | None:
    """A stored count; None if it is not a valid count."""
    return stored if isinstance(stored, int) and not isinstance(stored, bool) and stored >= 0 else None
