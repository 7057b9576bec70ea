"""The bodies and query parameters that clients send, decoded strictly."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from signal import Signals
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ...facts.jobs import JobState
from ...messages.topics import ALL_EVENTS, MOST_PATTERNS, problem
from ...spec.deployment.rollout_policy import MOST_SURGE
from ...spec.job_payload import LONGEST_KEY

LARGEST_BODY = 64 * 1024
MOST_ROWS = 1000
MOST_JOBS = 1000
LARGEST_ENQUEUE = 2 * 1024 * 1024
LONGEST_PAUSE_S = 10 * 365 * 86_400.0
MOST_WORKERS = 10_000

SIGNALS = sorted(signal.name for signal in Signals)

Text = Annotated[str, Meta(max_length=500, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]
"""A line for people; terminals show it, so control characters are refused."""

LONGEST_NUMBER = 18
"""In digits; a larger number does not fit into a database column."""


class InvalidRequestError(Exception):
    """The request is invalid: the status to reply with, a code, a message."""

    def __init__(self, status: int, error: str, message: str) -> None:
        self.status = status
        self.error = error
        super().__init__(message)


class Nothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No arguments."""


class PauseArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The reason and the duration; without `for_s` the pause lasts until it is resumed."""

    reason: Text = ""
    for_s: Annotated[float, Meta(gt=0, le=LONGEST_PAUSE_S)] | None = None


class SignalArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The signal by its name, with or without SIG."""

    signal: Annotated[str, Meta(min_length=1, max_length=20, extra_json_schema={"enum": SIGNALS})]
    """Checked by the handler."""


class RollArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many additional workers there may be, so that new processes are ready before old ones stop."""

    surge: Annotated[int, Meta(ge=1, le=MOST_SURGE)] | None = None
    """None: as the policy `rollout` of the group says; without one, workers stop before they start again."""
    roll_back: bool = True
    """Whether replaced workers get the old configuration back if a new process is not well."""


class ScaleArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The new number of workers of the group."""

    count: Annotated[int, Meta(ge=0, le=MOST_WORKERS)]


class UpgradeArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The interpreter of another installation, if it is not the supervisor's; whether it is only checked."""

    python: Annotated[str, Meta(min_length=1, max_length=4096)] | None = None
    check: bool = False


class UniqueArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which earlier jobs are the same: with this key, added within this time, in one of these states."""

    for_s: Annotated[float, Meta(gt=0, le=LONGEST_PAUSE_S)]
    key: Annotated[str, Meta(min_length=1, max_length=LONGEST_KEY)] | None = None
    """Without a key: with the same payload."""
    states: Annotated[list[JobState], Meta(min_length=1)] | None = None


class EnqueueArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The payloads, one per job, and how to process them."""

    payloads: Annotated[list[Any], Meta(min_length=1, max_length=MOST_JOBS)]
    priority: Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)] = 0
    delay_s: Annotated[float, Meta(ge=0, le=LONGEST_PAUSE_S)] = 0.0
    max_retries: Annotated[int, Meta(ge=0, le=2**31 - 1)] | None = None
    crash_retries: Annotated[int, Meta(ge=0, le=2**31 - 1)] | None = None
    unique: UniqueArguments | None = None
    error_retries: Annotated[int, Meta(ge=0, le=2**31 - 1)] | None = None
    """The same as `max_retries`."""
    retry_delay_s: Annotated[float, Meta(ge=0, le=1e9)] | None = None
    max_retry_delay_s: Annotated[float, Meta(ge=0, le=1e9)] | None = None
    timeout_s: Annotated[float, Meta(gt=0, le=1e9)] | None = None
    expires_in_s: Annotated[float, Meta(gt=0, le=1e9)] | None = None
    expires_at: Annotated[datetime, Meta(tz=True)] | None = None
    key: Annotated[str, Meta(min_length=1, max_length=LONGEST_KEY)] | None = None
    """What the limits of the queue for a key count together."""
    after: Annotated[list[Annotated[int, Meta(ge=1, le=10**18)]], Meta(max_length=MOST_JOBS)] = []
    """The jobs that must be done before."""
    traceparent: Annotated[str, Meta(max_length=55)] | None = None
    """The trace that they belong to, as W3C Trace Context has it."""

    def audited(self) -> dict[str, Any]:
        """What the audit records: the number of jobs, not their payloads, which may hold secrets."""
        return {"jobs": len(self.payloads), "priority": self.priority, "delay_s": self.delay_s}


class BatchArguments(EnqueueArguments, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The same for a batch, and the payload of the job that runs when all of them have ended."""

    then: Any
    then_queue: Annotated[str, Meta(min_length=1, max_length=LONGEST_KEY)] | None = None
    """The queue of that job; by default the same."""


class JobQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which jobs to list."""

    queue: Text | None = None
    state: Annotated[str, Meta(extra_json_schema={"enum": list(JobState)})] | None = None
    """Checked by the handler, whose message lists the states."""
    limit: Annotated[int, Meta(ge=1, le=MOST_ROWS)] = 100
    evidence: bool = False


class HealthQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which worker, by default all, and how old its last heartbeat may be."""

    worker: Text | None = None
    max_age_s: Annotated[float, Meta(gt=0, le=LONGEST_PAUSE_S)] | None = None


class LimitQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The maximum number of rows."""

    limit: Annotated[int, Meta(ge=1, le=MOST_ROWS)] = 100


Number = Annotated[int, Meta(ge=0, le=10**18)]
LATEST_WALL_MS = 253_402_300_000_000
"""The end of the year 9999."""
MOST_LINES = 200
Patterns = Annotated[str, Meta(min_length=1, max_length=2000)]
"""Topic patterns, separated by commas."""


class OutputQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which output lines to return: those after a number, or the last ones of each worker."""

    ids: Annotated[str, Meta(max_length=20_000)] = ""
    """Worker ids separated by commas; empty: all workers."""
    after: Number | None = None
    last: Annotated[int, Meta(ge=0, le=MOST_LINES)] = 10


class LogPageQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which lines of a worker's output to find, and from where to search towards older ones."""

    find: Annotated[str, Meta(max_length=500)] = ""
    """A text that they contain, in any case."""
    stream: Annotated[str, Meta(extra_json_schema={"enum": ["", "out", "err", "log"]}, max_length=3)] = ""
    generation: Number | None = None
    before: Annotated[int, Meta(ge=0, le=LATEST_WALL_MS)] | None = None
    """`before` of the former page: wall-clock milliseconds."""
    seen: Number = 0
    """`seen` of the former page."""
    limit: Annotated[int, Meta(ge=1, le=MOST_ROWS)] = 200


class EventStreamQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which topics to follow, and after which event; `Last-Event-ID` wins over `since`."""

    topics: Patterns = ALL_EVENTS
    since: Number | None = None


class TimelineQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The maximum number of timeline entries, and since when."""

    limit: Annotated[int, Meta(ge=1, le=MOST_ROWS)] = 100
    since: Number = 0
    """Wall-clock milliseconds."""


class EventLogQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which events of the log to return: those after a number, or the latest ones."""

    after: Number | None = None
    limit: Annotated[int, Meta(ge=1, le=MOST_ROWS)] = 100
    topics: Patterns = ALL_EVENTS


def topics_of(text: str) -> tuple[str, ...]:
    """The patterns in a query's `topics`.

    Raises:
        InvalidRequestError: a pattern matches no topic, or there are too many.
    """
    patterns = tuple(part.strip() for part in text.split(","))
    if len(patterns) > MOST_PATTERNS:
        raise InvalidRequestError(422, "invalid", f"at most {MOST_PATTERNS} topics are allowed")
    for pattern in patterns:
        wrong = problem(pattern)
        if wrong is not None:
            raise InvalidRequestError(422, "unknown_topic", wrong)
    return patterns


def last_event_id(text: str | None) -> int | None:
    """The number in a `Last-Event-ID` header.

    Raises:
        InvalidRequestError: it is not a number.
    """
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 18):
        raise InvalidRequestError(422, "invalid", "Last-Event-ID must be the number of an event")
    return int(text)


def decode_body(body: bytes, kind: type[Any]) -> Any:
    """The arguments in a body; an empty body has none.

    Raises:
        InvalidRequestError: the body is not JSON, or does not match the type.
    """
    try:
        return _decoded(body or b"{}", kind)
    except msgspec.ValidationError as error:
        raise InvalidRequestError(422, "invalid", f"invalid body: {error}") from None
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise InvalidRequestError(400, "malformed", f"the body is not JSON: {error}") from None


def generation_of(text: str) -> int:
    """The number of an incarnation in a path.

    Raises:
        InvalidRequestError: it is not a number.
    """
    if not text.isascii() or not text.isdecimal() or len(text) > LONGEST_NUMBER:
        raise InvalidRequestError(422, "invalid", f"{text[:80]!r} is not a generation; use a number")
    return int(text)


def decode_query(pairs: Sequence[tuple[str, str]], kind: type[Any]) -> Any:
    """The arguments in a query string; each at most once.

    Raises:
        InvalidRequestError: a parameter is unknown, invalid or repeated.
    """
    given = dict(pairs)
    if len(given) != len(pairs):
        raise InvalidRequestError(422, "invalid", "a query parameter is repeated")
    try:
        return msgspec.convert(given, type=kind, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidRequestError(422, "invalid", f"invalid query: {error}") from None


def _decoded(body: bytes, kind: type[Any]) -> Any:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError:
        # Some JSON encoders write integers as 3.0; accept them.
        return msgspec.convert(_with_whole_numbers(msgspec.json.decode(body)), type=kind)


def _with_whole_numbers(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_with_whole_numbers(each) for each in value]
    if isinstance(value, dict):
        return {key: _with_whole_numbers(each) for key, each in value.items()}
    return value
