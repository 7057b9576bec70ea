"""A job, as `process` receives it."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from types import TracebackType
from typing import Any

from ..handle import Worker
from .claims import Claim, now_wall_ms
from .executions.execution import ClaimLostError, Execution

LONGEST_ERROR = 4000
LONGEST_NOTE = 200
LONGEST_RESULT = 1_000_000
"""In bytes, as of a payload."""

PACKAGE = os.path.dirname(__file__)
ENTRIES = ("_execute", "_processed", "_awaited")
"""The functions here that run a job's own code."""


class Job:
    """One execution of a job.

    Attributes:
        id: Its number; also the worker's `current_job` while it is executed.
        queue: The queue that it came from.
        payload: What was enqueued, decoded from JSON.
        attempt: 1 at the first execution. An earlier one may have been interrupted at any point.
        crash_count: How often a worker has died on it.
        error_count: How often it has raised.
        resumed: What an earlier execution passed to `checkpoint`; None if there is nothing.
        batch: How the jobs of a batch ended (`id`, `total`, `done`, `failed`), if this one is at its end.
        traceparent: The trace in which it was enqueued, as W3C Trace Context has it; None without one.
    """

    __slots__ = (
        "_execution", "_save", "_show", "_worker",
        "attempt", "batch", "crash_count", "error_count", "id", "payload", "queue", "resumed", "traceparent",
    )  # fmt: skip

    def __init__(
        self,
        claim: Claim,
        payload: Any,
        worker: Worker,
        save: Callable[[str], bool],
        show: Callable[[str], None],
        execution: Execution,
    ) -> None:
        self.id = claim.id
        self.queue = claim.queue
        self.payload = payload
        self.attempt = claim.attempt
        self.crash_count = claim.crash_count
        self.error_count = claim.error_count
        self.resumed: Any = None if claim.checkpoint is None else json.loads(claim.checkpoint)
        self.batch: Any = None if claim.batch_counts is None else json.loads(claim.batch_counts)
        self.traceparent = claim.traceparent
        self._save = save
        self._show = show
        self._execution = execution
        self._worker = worker

    @classmethod
    def for_test(
        cls, payload: object = None, *, attempt: int = 1, resumed: object = None, batch: object = None
    ) -> Job:
        """A job outside of every queue, to test a `process` with: nothing is stored.

        Payload, checkpoint and batch arrive as they would from the queue, by way of JSON.

        Raises:
            TypeError: one of them is not JSON.
            ValueError: one of them is too long, or holds a number that JSON does not support.
        """
        claim = Claim(
            id=1,
            queue="test",
            payload=encoded(payload, "the payload") or "null",
            attempt=attempt,
            crash_count=0,
            error_count=0,
            max_retries=None,
            alone=False,
            checkpoint=encoded(resumed, "the checkpoint"),
            batch_counts=encoded(batch, "the batch"),
        )
        return cls(claim, json.loads(claim.payload), Worker(), lambda _: True, _ignore, Execution(claim))

    def checkpoint(self, data: object) -> None:
        """Store how far this execution came; it is durable when this returns.

        If the worker dies, or the job raises and is retried, the next execution finds the data in
        `resumed` and continues there. A result removes it.

        Raises:
            ClaimLostError: the job was given to another worker; this execution should end.
            JobCancelledError: the job was cancelled, or timed out; nothing was stored.
            TypeError: the data is not JSON.
            ValueError: it is too long, or holds a number that JSON does not support.
        """
        self._execution.check()
        if not self._save(encoded(data, "the checkpoint") or "null"):
            self._execution.check()
            raise ClaimLostError(f"job {self.id} was given to another worker")

    @property
    def stopping(self) -> bool:
        """Whether the worker is asked to stop: a long job may finish early, or raise to be retried."""
        return not self._worker.running

    @property
    def cancelled(self) -> bool:
        """Whether this execution should end: the job was cancelled or timed out, or its claim is lost.

        An execution that continues is ended with its process after a while (`cancel_grace_s`).
        """
        return self._execution.reason is not None

    def progress(self, done: float | str | None = None, total: float | None = None, note: str = "") -> None:
        """Report that the job moves on, and show how far it is; a text alone is a note.

        It is cheap: what it shows is stored once a second at most, in the background.

        Raises:
            JobCancelledError: the job was cancelled, or timed out.
            ClaimLostError: the job was given to another worker; this execution should end.
            TypeError: `done` or `total` is not a number, or the note is not a text.
            ValueError: `done` or `total` is not finite.
        """
        if isinstance(done, str):
            note, done = done, None
        shown = _shown(done, total, note)
        note_mark = note[:LONGEST_NOTE] or None if done is None else None
        self._worker.progress(done if isinstance(done, int) else note_mark)
        self._execution.check()
        if shown is not None:
            self._show(shown)

    def __repr__(self) -> str:
        return f"<Job {self.id} of {self.queue!r}, attempt {self.attempt}>"


def _ignore(_: str) -> None:
    """Store nothing."""


def _shown(done: float | None, total: float | None, note: str) -> str | None:
    """Progress as it is stored; None if there is nothing to show."""
    for name, number in (("done", done), ("total", total)):
        if number is not None and (isinstance(number, bool) or not isinstance(number, (int, float))):
            raise TypeError(f"{name} must be a number, not {number!r:.40}")
        if number is not None and not math.isfinite(number):
            raise ValueError(f"{name} must be a finite number, not {number!r}")
    if not isinstance(note, str):
        raise TypeError(f"the note must be a text, not {note!r:.40}")
    if done is None and total is None and not note:
        return None
    # Half of a surrogate pair cannot be decoded again, and PostgreSQL does not accept NUL.
    note = note[:LONGEST_NOTE].encode("utf-8", "replace").decode().replace("\0", "?")
    return json.dumps({"done": done, "total": total, "note": note, "at_wall_ms": now_wall_ms()})


def encoded(result: object, what: str = "the result") -> str | None:
    """The result of a job, or its checkpoint, as it is stored.

    Raises:
        TypeError: it is not JSON.
        ValueError: it holds a number that JSON does not support, or is too long.
    """
    if result is None:
        return None
    try:
        text = json.dumps(result, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{what} is not JSON: {error}") from None
    if len(text) > LONGEST_RESULT:
        raise ValueError(
            f"{what} is too long: {len(text)} bytes, the limit is {LONGEST_RESULT};"
            " store it elsewhere, and only its place here"
        )
    return text


def error_text(error: BaseException) -> str:
    """An exception as it is stored: its message first, then the end of its traceback."""
    import traceback

    sentence = f"{type(error).__name__}: {error}"[: LONGEST_ERROR // 2]
    trace = "".join(traceback.format_tb(_of_job(error.__traceback__)))[-LONGEST_ERROR // 2 :]
    # PostgreSQL does not accept NUL, and UTF-8 cannot encode half of a surrogate pair.
    text = f"{sentence}\n{trace}" if trace else sentence
    return text.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")


def _of_job(trace: TracebackType | None) -> TracebackType | None:
    """The part of a traceback that begins in the job's own code."""
    own = trace
    while trace is not None:
        code, trace = trace.tb_frame.f_code, trace.tb_next
        if code.co_name in ENTRIES and code.co_filename.startswith(PACKAGE):
            own = trace
    return own
