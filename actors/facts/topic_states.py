"""Pure: the current state of workers, queues, jobs and the system, as views show it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import msgspec

from ..deaths.death import Job
from .health_status import ShownStatus, Status
from .jobs import JobProgress, JobState, JobView, QueueStats

LONGEST_PATH = 1024
LONGEST_DECODED = 16_384
"""Longer payloads and results are not decoded: there may be a thousand of them."""


class WorkerState(msgspec.Struct, frozen=True, kw_only=True):
    """One worker."""

    component: str
    id: int | None = None
    """The number at the end of its component id, if any; for display only."""
    queue_type: str | None = None
    """The middle of `worker:{type}:{id}`, if the id has this form."""
    status: ShownStatus
    pid: int | None = None
    current_job: Job | None = None
    health: Status | None = None
    """Its exact health, None if it does not run: `unhealthy` and `recovering` are shown as `healthy`."""


class QueueState(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of one queue, or of all of them together."""

    queue_type: str | None
    """None: all queues together."""
    pending: int = 0
    running: int = 0
    completed: int = 0
    avg_time: float = 0.0
    """Average seconds per job; 0 if none is completed."""
    eta: float = 0.0
    """Seconds until the pending jobs are done."""
    paused: bool = False
    """Whether no job of it is started now."""


class JobTopicState(msgspec.Struct, frozen=True, kw_only=True):
    """One job. `rekindle.actors` exports it as `JobState`.

    The words of `status` are attributes of the class, too: `JobState.TOXIC`.
    """

    PENDING: ClassVar[JobState] = JobState.PENDING
    RUNNING: ClassVar[JobState] = JobState.RUNNING
    DONE: ClassVar[JobState] = JobState.DONE
    ERROR: ClassVar[JobState] = JobState.ERROR
    TOXIC: ClassVar[JobState] = JobState.TOXIC
    CANCELLED: ClassVar[JobState] = JobState.CANCELLED
    EXPIRED: ClassVar[JobState] = JobState.EXPIRED
    WAITING: ClassVar[JobState] = JobState.WAITING
    id: int
    queue_type: str | None = None
    path: str | None = None
    """The `path` of its payload, if there is one."""
    status: str
    """pending, running, done, error, toxic, cancelled, expired or dropped."""
    error: str | None = None
    results: Mapping[str, Any] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    """What it returned, under `result` unless it is an object; empty if it is too long."""
    progress: JobProgress | None = None
    """How far it is, as it reported last."""


class SystemHealthState(msgspec.Struct, frozen=True):
    """The system as a whole."""

    status: str = "healthy"
    """healthy, degraded or error."""
    errors: tuple[str, ...] = ()


State = WorkerState | QueueState | JobTopicState | SystemHealthState


def worker_state(component_id: str, status: ShownStatus) -> WorkerState:
    """A worker of which only the status is known."""
    parts = component_id.split(":")
    kind = ":".join(parts[1:-1]) if len(parts) > 2 and parts[0] == "worker" else None
    number = int(parts[-1]) if parts[-1].isascii() and parts[-1].isdecimal() else None
    return WorkerState(component=component_id, id=number, queue_type=kind, status=status)


def queue_state(stats: QueueStats) -> QueueState:
    """The numbers of a queue, as the queue itself gives them."""
    return QueueState(
        queue_type=stats.queue,
        pending=stats.pending,
        running=stats.running,
        completed=stats.completed,
        avg_time=round(stats.average_s, 3),
        eta=round(stats.eta_s, 3),
        paused=stats.pause is not None,
    )


def job_state(job: JobView) -> JobTopicState:
    """A job, without its private or long parts."""
    payload, result = _decoded(job.payload), _decoded(job.result)
    path = payload.get("path") if isinstance(payload, dict) else None
    return JobTopicState(
        id=job.id,
        queue_type=job.queue,
        path=path[:LONGEST_PATH] if isinstance(path, str) else None,
        status=job.state,
        error=job.error.partition("\n")[0] if job.error else None,
        results=result if isinstance(result, dict) else {} if result is None else {"result": result},
        progress=job.progress,
    )


def _decoded(text: str | None) -> Any:
    try:
        return json.loads(text) if text and len(text) <= LONGEST_DECODED else None
    except (ValueError, RecursionError):
        return None


def aggregate(queues: Iterable[QueueState]) -> QueueState:
    """All queues together: sums, the average weighted by completed jobs, the longest wait."""
    each = tuple(queues)
    completed = sum(queue.completed for queue in each)
    worked = sum(queue.avg_time * queue.completed for queue in each)
    return QueueState(
        queue_type=None,
        pending=sum(queue.pending for queue in each),
        running=sum(queue.running for queue in each),
        completed=completed,
        avg_time=worked / completed if completed else 0.0,
        eta=max((queue.eta for queue in each), default=0.0),
    )
