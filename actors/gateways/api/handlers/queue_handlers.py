"""The handlers of the routes about whole queues."""

from __future__ import annotations

import msgspec

from ....errors import UnknownBatchError
from ....facts.queues import BatchView, PeriodicView, QueuePause
from ....ports import Jobs
from ....spec.job_payload import checked_queue
from ...serving.json_values import CommandResult, view, view_type
from ..request_bodies import InvalidRequestError
from ..route import Request

Pause = view_type(QueuePause)
Batch = view_type(BatchView)
PeriodicJob = view_type(PeriodicView)


class PausedQueuesDocument(msgspec.Struct, frozen=True):
    """The queues that are paused."""

    pauses: list[Pause]  # type: ignore[valid-type]


def paused(jobs: Jobs) -> PausedQueuesDocument:
    """The queues that are paused, by name."""
    return PausedQueuesDocument(view(jobs.pauses()))


class PeriodicJobsDocument(msgspec.Struct, frozen=True):
    """The periodic jobs, by name."""

    periodic: list[PeriodicJob]  # type: ignore[valid-type]


def periodic_jobs(jobs: Jobs) -> PeriodicJobsDocument:
    """The periodic jobs, and what became of their due times."""
    return PeriodicJobsDocument(view(jobs.periodic()))


def periodic(request: Request) -> object:
    return periodic_jobs(request.operator.jobs)


class BatchesDocument(msgspec.Struct, frozen=True):
    """Batches of jobs, newest first."""

    batches: list[Batch]  # type: ignore[valid-type]


def batch_list(jobs: Jobs, limit: int) -> BatchesDocument:
    """The latest batches."""
    return BatchesDocument(view(jobs.batches(limit=limit)))


def batches(request: Request) -> object:
    return batch_list(request.operator.jobs, request.arguments.limit)


def batch_of(jobs: Jobs, number: int) -> object:
    """One batch."""
    for found in jobs.batches(number):
        return Batch(**view(found))
    raise UnknownBatchError(number)


def batch(request: Request) -> object:
    if not request.target.isdecimal() or len(request.target) > 18:
        raise InvalidRequestError(422, "invalid", f"{request.target[:80]!r} is not a batch number")
    return batch_of(request.operator.jobs, int(request.target))


def pauses(request: Request) -> object:
    return paused(request.operator.jobs)


def pause(request: Request) -> object:
    operator, given = request.operator, request.arguments
    checked_queue(request.target, operator.queues)
    return CommandResult(
        detail=view(operator.jobs.pause(request.target, reason=given.reason, for_s=given.for_s))
    )


def resume(request: Request) -> object:
    was_paused = request.operator.jobs.resume(request.target)
    return CommandResult("done" if was_paused else "already")
