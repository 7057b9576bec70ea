"""Queues into which a worker puts jobs through its supervisor, without the address of the database."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol, TypedDict

from ..claims import QueueUnavailableError
from . import wire
from .relay_connection import RelayConnection


class JobRefusedError(ValueError):
    """The supervisor does not accept a job: the text says why. Nothing was added."""


class Same(Protocol):
    """What makes a job the same as an earlier one: `Unique` here or in `rekindle.actors`."""

    @property
    def key(self) -> str | None:
        """None: the payload."""
        ...

    @property
    def for_s(self) -> float:
        """For how long."""
        ...

    @property
    def states(self) -> Sequence[str]:
        """In which states; none: the usual ones."""
        ...


class Unique(NamedTuple):
    """Which jobs count as the same: no second one is added to the queue while there is a first."""

    key: str | None = None
    """None: its payload, so that jobs with equal payloads are the same."""
    for_s: float = 0.0
    """How long after it was added the first one stands in the way of a second; it must be given."""
    states: tuple[str, ...] = ()
    """In which states it does; none: pending, waiting, running or done."""


class NewJobSettings(TypedDict, total=False):
    """The settings of a job; the manual of the queues explains each."""

    priority: int
    delay_s: float
    error_retries: int
    retry_delay_s: float
    max_retry_delay_s: float
    crash_retries: int
    timeout_s: float
    expires_in_s: float
    expires_at: datetime
    unique: Same
    key: str
    after: Sequence[int]
    traceparent: str | None


class RelayQueue:
    """Puts jobs into the queues that this worker may use. Every method may be called from any thread."""

    def __init__(self, address: str, generation: int) -> None:
        self._connection = RelayConnection(address, generation)
        self._lock = threading.Lock()

    def enqueue_many(
        self, queue: str, payloads: Iterable[object], settings: NewJobSettings
    ) -> tuple[int, ...]:
        """Put a job for each payload into a queue, all or none; their numbers.

        Raises:
            JobRefusedError: a payload or a setting is not valid, or the worker may not use the queue.
            ConnectionError: the supervisor or its database does not answer; whether the jobs were added is
                unknown.
        """
        question = _question(queue, payloads, settings)
        try:
            with self._lock:
                return tuple(self._connection.ask_text(question))
        except wire.RefusedError as error:
            raise JobRefusedError(str(error)) from None
        except QueueUnavailableError as error:
            # Of another kind than what a claim raises: it is an error of the job that adds these.
            raise ConnectionError(f"it is unknown whether the jobs were added: {error}") from error

    def close(self) -> None:
        """Close the connection; the next job opens another."""
        with self._lock:
            self._connection.close()


def _question(queue: str, payloads: Iterable[object], settings: NewJobSettings) -> str:
    if isinstance(payloads, str | bytes | dict):
        raise JobRefusedError(
            f"a list of payloads is needed, not {payloads!r:.40}: one job is added by enqueue"
        )
    given = {name: _sent(name, value) for name, value in settings.items() if value is not None}
    try:
        question = json.dumps(
            {"do": "enqueue", "queue": queue, "payloads": list(payloads), "settings": given},
            separators=(",", ":"),
            allow_nan=False,
        )
    except (TypeError, ValueError, RecursionError) as error:
        raise JobRefusedError(f"the payload or a setting is not JSON: {error}") from None
    if len(question) > wire.MOST_BYTES:
        raise JobRefusedError(
            f"the jobs of one request may have {wire.MOST_BYTES} bytes together, and these have"
            f" {len(question)}: add them in parts"
        )
    return question


def _sent(name: str, value: Any) -> object:
    if name == "expires_at" and isinstance(value, datetime):
        return value.isoformat()
    if name == "unique":
        states = {"states": tuple(map(str, value.states))} if value.states else {}
        return {"key": value.key, "for_s": value.for_s, **states}
    return value
