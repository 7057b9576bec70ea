"""Pure: what may be put into a queue, checked here rather than by the worker that takes the job."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import TypedDict, Unpack

from msgspec.structs import replace

from rekindle.worker.jobs.traceparent import parsed

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


class JobSettings(TypedDict, total=False):
    """How to execute a job. A setting that is left out comes from the worker's `jobs`, or does not apply.

    priority: a smaller number comes first.
    delay_s: the earliest start, in seconds from now.
    error_retries: how often it is retried if it raises or times out (`max_retries` is the same).
    retry_delay_s: the delay before the first of these retries; it doubles each time.
    max_retry_delay_s: the longest such delay.
    crash_retries: how often it is requeued if its worker dies.
    timeout_s: how long one execution may take; then it is asked to end, and later ended with its process.
    expires_in_s: if it has not begun by then, in seconds from now, it expires and never runs.
    expires_at: the same as a point in time.
    unique: which earlier job is the same; if there is one, its number is returned and none is added.
        Without a key, it is one with the same payload.
    key: what the limits of its queue for a key count together, such as a customer.
    after: the numbers of jobs that must be done before it; if one of them fails, it is cancelled.
    traceparent: the trace that it belongs to (W3C Trace Context); by default the caller's current span of
        OpenTelemetry, if there is one. None: no trace.
    """

    priority: int
    delay_s: float
    error_retries: int | None
    max_retries: int | None
    retry_delay_s: float | None
    max_retry_delay_s: float | None
    crash_retries: int | None
    timeout_s: float | None
    expires_in_s: float | None
    expires_at: datetime | None
    unique: Unique | None
    key: str | None
    after: Sequence[int]
    traceparent: str | None


def new_job(text: str, now_wall_ms: int, **settings: Unpack[JobSettings]) -> NewJob:
    """A new job.

    Raises:
        PayloadError: a setting is not valid.
        TypeError: there is no such setting.
    """
    if unknown := settings.keys() - JobSettings.__annotations__.keys():
        raise TypeError(f"a job has no setting {', '.join(sorted(unknown))}")
    priority, delay_s, unique = (
        settings.get("priority", 0),
        settings.get("delay_s", 0.0),
        settings.get("unique"),
    )
    if not _is_int(priority) or priority not in INT_RANGE:
        raise PayloadError(f"priority must be a 32-bit integer, not {priority!r:.40}")
    if not _is_seconds(delay_s):
        raise PayloadError(f"delay_s must be from 0 to 1e9 seconds, not {delay_s!r:.40}")
    begins = now_wall_ms + round(delay_s * 1000)
    return NewJob(
        payload=text,
        priority=priority,
        not_before_wall_ms=begins if delay_s else None,
        max_retries=_error_retries(settings),
        crash_retries=_count("crash_retries", settings.get("crash_retries")),
        unique=None if unique is None else _checked_unique(unique, text),
        timeout_ms=_milliseconds("timeout_s", settings.get("timeout_s"), least_ms=1),
        retry_delay_ms=_milliseconds("retry_delay_s", settings.get("retry_delay_s")),
        max_retry_delay_ms=_milliseconds("max_retry_delay_s", settings.get("max_retry_delay_s")),
        expires_at_wall_ms=_expiry(settings, now_wall_ms, begins),
        key=_checked_key(settings.get("key")),
        after=_checked_after(settings.get("after", ())),
        traceparent=_checked_trace(settings.get("traceparent")),
    )


def _error_retries(settings: JobSettings) -> int | None:
    """`error_retries`, which had the name `max_retries` at first."""
    named = {name: settings.get(name) for name in ("error_retries", "max_retries")}
    given = {_count(name, count) for name, count in named.items() if count is not None}
    if len(given) > 1:
        raise PayloadError("error_retries and max_retries are the same setting: pass one of them")
    return given.pop() if given else None


def _count(name: str, count: object) -> int | None:
    if count is None or (isinstance(count, int) and _is_int(count) and 0 <= count < INT_RANGE.stop):
        return count
    raise PayloadError(f"{name} must be an integer of at least 0, not {count!r:.40}")


def _milliseconds(name: str, seconds: float | None, least_ms: int = 0) -> int | None:
    if seconds is None:
        return None
    if not _is_seconds(seconds) or round(seconds * 1000) < least_ms:
        least = f"at least {least_ms / 1000:g}" if least_ms else "from 0"
        raise PayloadError(f"{name} must be {least} and at most 1e9 seconds, not {seconds!r:.40}")
    return round(seconds * 1000)


def _expiry(settings: JobSettings, now_wall_ms: int, begins_wall_ms: int) -> int | None:
    in_s, at = settings.get("expires_in_s"), settings.get("expires_at")
    if in_s is not None and at is not None:
        raise PayloadError("a job has expires_in_s or expires_at, not both")
    if at is not None:
        if not isinstance(at, datetime) or at.tzinfo is None:
            raise PayloadError(f"expires_at must be a datetime with a time zone, not {at!r:.60}")
        expires = round(at.timestamp() * 1000)
    elif in_s is not None:
        expires = now_wall_ms + (_milliseconds("expires_in_s", in_s, least_ms=1) or 0)
    else:
        return None
    if expires <= now_wall_ms:
        raise PayloadError("expires_at is in the past: the job would never run")
    if expires <= begins_wall_ms:
        raise PayloadError("the job expires before its delay_s is over: it would never run")
    return expires


def _checked_key(key: object) -> str | None:
    if key is None:
        return None
    if not isinstance(key, str) or not 0 < len(key) <= LONGEST_KEY or "\0" in key:
        raise PayloadError(f"key must be a text of 1 to {LONGEST_KEY} characters, not {key!r:.40}")
    return key


def _checked_trace(traceparent: object) -> str | None:
    if traceparent is None:
        return None
    if not isinstance(traceparent, str) or parsed(traceparent) is None:
        raise PayloadError(
            "traceparent must be as W3C Trace Context has it, 00-TRACE-SPAN-FLAGS in lower case, "
            f"not {traceparent!r:.60}"
        )
    return traceparent


def _checked_after(after: Sequence[int]) -> tuple[int, ...]:
    is_list = isinstance(after, Sequence) and not isinstance(after, str)
    if not is_list or not all(_is_int(each) and 0 < each < 2**63 for each in after):
        raise PayloadError(f"after must be numbers of jobs, not {after!r:.40}")
    return tuple(after)


def _checked_unique(unique: Unique, text: str) -> Unique:
    if not isinstance(unique, Unique):
        raise PayloadError(f"unique must be a Unique(key, for_s), not {unique!r:.40}")
    if unique.key is None:
        unique = replace(unique, key=f"payload {sha256(_in_order(text)).hexdigest()}")
    if not isinstance(unique.key, str) or not 0 < len(unique.key) <= LONGEST_KEY or "\0" in unique.key:
        raise PayloadError(f"the key of a unique job must be a text of 1 to {LONGEST_KEY} characters")
    if not _is_seconds(unique.for_s) or unique.for_s == 0:
        raise PayloadError(f"a unique job needs a period for_s of more than 0 s, not {unique.for_s!r:.40}")
    if not unique.states or not set(unique.states) <= set(JobState):
        raise PayloadError(f"the states of a unique job must be some of {', '.join(JobState)}")
    return unique


def _in_order(text: str) -> bytes:
    """The same payload for each order of its keys."""
    return json.dumps(json.loads(text), sort_keys=True).encode()


def new_jobs(
    payloads: Iterable[object], now_wall_ms: int, **settings: Unpack[JobSettings]
) -> tuple[NewJob, ...]:
    """A new job for each payload; see `new_job`.

    Raises:
        PayloadError: a payload is not JSON or too long, a number is not valid, or there is one payload and
            no list of them.
    """
    if isinstance(payloads, str | bytes | Mapping):
        raise PayloadError(f"a list of payloads is needed, not {payloads!r:.40}: one job is added by enqueue")
    payloads, unique = tuple(payloads), settings.get("unique")
    if len(payloads) > 1 and isinstance(unique, Unique) and unique.key is not None:
        raise PayloadError(
            f"{len(payloads)} jobs cannot share the key {unique.key!r:.40}, only one of them would be added:"
            " without a key, those with the same payload are the same"
        )
    return tuple(new_job(payload_text(payload), now_wall_ms, **settings) for payload in payloads)


def checked_batch(jobs: Sequence[NewJob]) -> Sequence[NewJob]:
    """The jobs of a batch.

    Raises:
        PayloadError: there are none, or one is unique and might belong to another batch.
    """
    if not jobs:
        raise PayloadError("a batch needs at least one job")
    if any(job.unique for job in jobs):
        raise PayloadError("a job of a batch cannot be unique")
    return jobs


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
