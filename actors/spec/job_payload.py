"""Pure: what may be put into a queue. Whatever is wrong is found here, not by the worker that meets it."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from ..errors import PayloadError, UnknownQueueError
from ..facts.jobs import NewJob

LONGEST_PAYLOAD = 1_000_000
"""In bytes. A job names its data; it is not the place to keep them."""

INT_RANGE = range(-(2**31), 2**31)


def checked_queue(queue: str, served: Collection[str]) -> str:
    """The queue, if somebody serves it.

    Raises:
        UnknownQueueError: nobody does, and the job would wait for ever.
    """
    if queue not in served:
        raise UnknownQueueError(str(queue), served)
    return queue


def payload_text(payload: object) -> str:
    """What is to be done as JSON text.

    Raises:
        PayloadError: it is not JSON, or too long.
    """
    try:
        text = json.dumps(payload, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise PayloadError(f"the payload is not JSON: {error}") from None
    return _short_enough(text)


def checked_text(text: str) -> str:
    """JSON text that somebody else wrote, on one line.

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
    """A job to be put into a queue.

    Raises:
        PayloadError: a number makes no sense.
    """
    if not _is_int(priority) or priority not in INT_RANGE:
        raise PayloadError(f"priority must be a whole number of 32 bits, is {priority!r:.40}")
    if max_retries is not None and (not _is_int(max_retries) or not 0 <= max_retries < INT_RANGE.stop):
        raise PayloadError(f"max_retries must be a whole number from 0 on, is {max_retries!r:.40}")
    if isinstance(delay_s, bool) or not isinstance(delay_s, (int, float)) or not 0 <= delay_s <= 1e9:
        raise PayloadError(f"delay_s must be a number of seconds from 0 on, is {delay_s!r:.40}")
    not_before = now_wall_ms + round(delay_s * 1000) if delay_s else None
    return NewJob(payload=text, priority=priority, not_before_wall_ms=not_before, max_retries=max_retries)


def _short_enough(text: str) -> str:
    if len(text) > LONGEST_PAYLOAD:
        raise PayloadError(f"the payload is too long: {len(text)} bytes, at most {LONGEST_PAYLOAD} are kept")
    return text


def _no_number(word: str) -> Any:
    raise PayloadError(f"the payload is not JSON: there is no number {word}")


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
