"""Pure: what may be put into a queue, checked here rather than by the worker that takes the job."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any

from ..errors import PayloadError, UnknownQueueError
from ..facts.jobs import NewJob

LONGEST_PAYLOAD = 1_000_000
"""In bytes. A job refers to its data; large data belong elsewhere."""

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


def checked_text(text: str) -> str:
    """The JSON text of a caller, on one line.

    Raises:
        PayloadError: it is not JSON, or too long.
    """
    try:
        return payload_text(json.loads(_short_enough(text), parse_constant=_no_number))
    except (ValueError, RecursionError) as error:
        if isinstance(error, PayloadError):
            raise
        raise PayloadError(f"the payload is not JSON: {error}") from None


def new_job(
    text: str, now_wall_ms: int, *, priority: int = 0, delay_s: float = 0.0, max_retries: int | None = None
) -> NewJob:
    """A new job.

    Raises:
        PayloadError: a number is not valid.
    """
    if not _is_int(priority) or priority not in INT_RANGE:
        raise PayloadError(f"priority must be a 32-bit integer, not {priority!r:.40}")
    if max_retries is not None and (not _is_int(max_retries) or not 0 <= max_retries < INT_RANGE.stop):
        raise PayloadError(f"max_retries must be an integer of at least 0, not {max_retries!r:.40}")
    if isinstance(delay_s, bool) or not isinstance(delay_s, (int, float)) or not 0 <= delay_s <= 1e9:
        raise PayloadError(f"delay_s must be from 0 to 1e9 seconds, not {delay_s!r:.40}")
    not_before = now_wall_ms + round(delay_s * 1000) if delay_s else None
    return NewJob(payload=text, priority=priority, not_before_wall_ms=not_before, max_retries=max_retries)


def new_jobs(payloads: Iterable[object], now_wall_ms: int, **settings: Any) -> tuple[NewJob, ...]:
    """A new job for each payload; see `new_job`.

    Raises:
        PayloadError: a payload is not JSON or too long, or a number is not valid.
    """
    return tuple(new_job(payload_text(payload), now_wall_ms, **settings) for payload in payloads)


def _short_enough(text: str) -> str:
    if len(text) > LONGEST_PAYLOAD:
        raise PayloadError(f"the payload is too long: {len(text)} bytes, the limit is {LONGEST_PAYLOAD}")
    return text


def _no_number(word: str) -> Any:
    raise PayloadError(f"the payload is not JSON: {word} is not a number")


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
