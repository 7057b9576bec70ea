"""Jobs that a worker without the address of the database puts into queues, through its supervisor.

The worker is not trusted: it may use the queues that its `jobs` name, and what it sends is checked like the
request of any other program.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from rekindle.worker.jobs.claims import QueueUnavailableError
from rekindle.worker.jobs.relayed.wire import MOST_JOBS, RefusedError

from ...errors import RekindleError, StoreUnavailableError, UnknownJobError
from ...facts.jobs import Unique
from ...ports import Producer
from ...spec.job_payload import JobSettings


class RelayedSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of `JobSettings`, as a worker sends them."""

    priority: int = 0
    delay_s: float = 0.0
    error_retries: int | None = None
    max_retries: int | None = None
    retry_delay_s: float | None = None
    max_retry_delay_s: float | None = None
    crash_retries: int | None = None
    timeout_s: float | None = None
    expires_in_s: float | None = None
    expires_at: Annotated[datetime, Meta(tz=True)] | None = None
    unique: Unique | None = None
    key: str | None = None
    after: Annotated[tuple[int, ...], Meta(max_length=MOST_JOBS)] = ()
    traceparent: str | None = None

    def chosen(self) -> JobSettings:
        """The settings that differ from the defaults."""
        names = self.__struct_fields__
        found = {name: getattr(self, name) for name in names if getattr(self, name) not in (None, ())}
        return JobSettings(**{"traceparent": None, **found})  # type: ignore[typeddict-item]


class EnqueueOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker asks for."""

    queue: str
    payloads: list[Any]
    settings: RelayedSettings = RelayedSettings()


def read_order(request: object, queues: Collection[str]) -> EnqueueOrder:
    """The order in a request.

    Raises:
        RefusedError: it is not one, it is too long, or the worker may not use the queue.
    """
    try:
        order = msgspec.convert(request, EnqueueOrder)
    except msgspec.ValidationError as error:
        raise RefusedError(f"a setting of the job is not valid: {error}") from None
    if len(order.payloads) > MOST_JOBS:
        raise RefusedError(
            f"{len(order.payloads)} jobs are too many for one request: the limit is {MOST_JOBS};"
            " add them in parts"
        )
    if order.queue not in queues:
        raise RefusedError(
            f"this worker may not put jobs into the queue {order.queue[:80]!r}, only into"
            f" {', '.join(sorted(queues))}: add the queue to `enqueues` in the `jobs` of the worker"
        )
    return order


def carry_out(order: EnqueueOrder, queues: Collection[str], producer: Producer) -> tuple[int, ...]:
    """Put the jobs into their queue, all or none; their numbers.

    Raises:
        RefusedError: the queues do not accept them; nothing was added.
        QueueUnavailableError: the database cannot be written to now.
    """
    try:
        _check_predecessors(order.settings.after, queues, producer)
        return producer.enqueue_many(order.queue, order.payloads, **order.settings.chosen())
    except StoreUnavailableError as error:
        raise QueueUnavailableError(str(error)) from error
    except (RekindleError, TypeError) as error:
        raise RefusedError(str(error)) from error


def _check_predecessors(after: tuple[int, ...], queues: Collection[str], producer: Producer) -> None:
    """Jobs of other queues do not exist for this worker."""
    known = {job.id for job in producer.named(after, longest=1) if job.queue in queues} if after else set()
    for job in after:
        if job not in known:
            raise UnknownJobError(job)
