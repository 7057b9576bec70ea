"""Pure: what may be put into a queue, checked here rather than by the worker that takes the job."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any

from ..errors import PayloadError, UnknownQueueError
from ..facts.jobs import JobState, NewJob, Unique
from ..facts.queues import QueuePause

LONGEST_PAYLOAD = 1_000_000
"""In bytes. A job refers to its data; large data belong elsewhere."""

LONGEST_KEY = 200

INT_RANGE = range(-(2**31), 2**31)


def checked_queue(queue: str, served: Collection[str]) -> str:
    """The queue, if a worker serves it.

    Raises:
        UnknownQueueError: no worker serves it, so the job would never be taken.
    """
    if queue not in served:
        raise UnknownQueueError(str(queue), served)
    return queue


def payload_text(payload: object) -> str:
    """The payload as JSON text.

    Raises:
        PayloadError: it is not JSON, or too long.
    """
    try:
        text = json.dumps(payload, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise PayloadError(f"the payload is not JSON: {error}") from None
    return _short_enough(text)


def new_job(
    text: str,
    now_wall_ms: int,
    *,
    priority: int = 0,
    delay_s: float = 0.0,
    max_retries: int | None = None,
    crash_retries: int | None = None,
    unique: Unique | None = None,
) -> NewJob:
    """A new job.

    Raises:
        PayloadError: a setting is not valid.
    """
    if not _is_int(priority) or priority not in INT_RANGE:
        raise PayloadError(f"priority must be a 32-bit integer, not {priority!r:.40}")
    for name, count in (("max_retries", max_retries), ("crash_retries", crash_retries)):
        if count is not None and (not _is_int(count) or not 0 <= count < INT_RANGE.stop):
            raise PayloadError(f"{name} must be an integer of at least 0, not {count!r:.40}")
    if not _is_seconds(delay_s):
        raise PayloadError(f"delay_s must be from 0 to 1e9 seconds, not {delay_s!r:.40}")
    return NewJob(
        payload=text,
        priority=priority,
        not_before_wall_ms=now_wall_ms + round(delay_s * 1000) if delay_s else None,
        max_retries=max_retries,
        crash_retries=crash_retries,
        unique=None if unique is None else _checked_unique(unique),
    )


def _checked_unique(unique: Unique) -> Unique:
    if not isinstance(unique, Unique):
        raise PayloadError(f"unique must be a Unique(key, for_s), not {unique!r:.40}")
    if not isinstance(unique.key, str) or not 0 < len(unique.key) <= LONGEST_KEY or "\0" in unique.key:
        raise PayloadError(f"the key of a unique job must be a text of 1 to {LONGEST_KEY} characters")
    if not _is_seconds(unique.for_s) or unique.for_s == 0:
        raise PayloadError(f"a unique job needs a period of more than 0 seconds, not {unique.for_s!r:.40}")
    if not unique.states or not set(unique.states) <= set(JobState):
        raise PayloadError(f"the states of a unique job must be some of {', '.join(JobState)}")
    return unique


def new_jobs(payloads: Iterable[object], now_wall_ms: int, **settings: Any) -> tuple[NewJob, ...]:
    """A new job for each payload; see `new_job`.

    Raises:
        PayloadError: a payload is not JSON or too long, or a number is not valid.
    """
    return tuple(new_job(payload_text(payload), now_wall_ms, **settings) for payload in payloads)


def new_pause(queue: str, now_wall_ms: int, reason: str, for_s: float | None) -> QueuePause:
    """A pause of a queue that begins now.

    Raises:
        PayloadError: the time is not valid.
    """
    if for_s is not None and (not _is_seconds(for_s) or for_s == 0):
        raise PayloadError(f"for_s must be more than 0 and at most 1e9 seconds, not {for_s!r:.40}")
    until = None if for_s is None else now_wall_ms + round(for_s * 1000)
    return QueuePause(queue=queue, at_wall_ms=now_wall_ms, until_wall_ms=until, reason=reason)


def _short_enough(text: str) -> str:
    if len(text) > LONGEST_PAYLOAD:
        raise PayloadError(f"the payload is too long: {len(text)} bytes, the limit is {LONGEST_PAYLOAD}")
    return text


def _is_seconds(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1e9


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
