"""A job, as its author gets it."""

from __future__ import annotations

import json
from typing import Any

from ..handle import Worker
from .claims import Claim

LONGEST_ERROR = 4000


class Job:
    """What is to be done, and how to say how it goes.

    Attributes:
        id: Its number; also the worker's `current_job` while it is executed.
        queue: Where it came from.
        payload: What was enqueued, decoded from JSON.
        attempt: 1 at the first execution. One that began before may have been cut off anywhere.
        crash_count: How often a worker has died on it.
        error_count: How often it has raised.
    """

    __slots__ = ("_worker", "attempt", "crash_count", "error_count", "id", "payload", "queue")

    def __init__(self, claim: Claim, payload: Any, worker: Worker) -> None:
        self.id = claim.id
        self.queue = claim.queue
        self.payload = payload
        self.attempt = claim.attempt
        self.crash_count = claim.crash_count
        self.error_count = claim.error_count
        self._worker = worker

    @property
    def stopping(self) -> bool:
        """Whether the worker is asked to stop: a long job may come to an end, or raise to be retried."""
        return not self._worker.running

    def progress(self, mark: int | str | None = None) -> None:
        """Note that the work has moved on; see `Worker.progress`."""
        self._worker.progress(mark)

    def __repr__(self) -> str:
        return f"<Job {self.id} of {self.queue!r}, attempt {self.attempt}>"


def encoded(result: object) -> str | None:
    """What a job returned, as it is kept.

    Raises:
        TypeError: it is not JSON.
        ValueError: it holds a number that JSON has not.
    """
    return None if result is None else json.dumps(result, separators=(",", ":"), allow_nan=False)


def error_text(error: BaseException) -> str:
    """An exception as it is kept: the sentence first, then the end of its traceback."""
    import traceback

    sentence = f"{type(error).__name__}: {error}"[: LONGEST_ERROR // 2]
    trace = "".join(traceback.format_tb(error.__traceback__))[-LONGEST_ERROR // 2 :]
    # PostgreSQL takes no NUL, and UTF-8 no half of a surrogate pair.
    text = f"{sentence}\n{trace}" if trace else sentence
    return text.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")
