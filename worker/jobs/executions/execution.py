"""One execution of a job, and why it should end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ..claims import Claim, now_wall_ms


class ClaimLostError(Exception):
    """The job is no longer this worker's: it was considered dead, or the job was taken from it."""


class JobCancelledError(BaseException):
    """The job was cancelled: this execution should end.

    Raised by `checkpoint` and `progress`. Not an `Exception`, so that a job which catches those to continue
    does not catch this one.
    """


class JobTimeoutError(JobCancelledError):
    """The execution takes longer than the job's `timeout_s`."""


class Execution:
    """One execution of a job, in one thread; other threads may ask it to end."""

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self.began_at_wall_ms = now_wall_ms()
        self.reason: BaseException | None = None
        """Why it should end; the first reason stays."""
        self.asked_at = float("inf")
        """Since when."""
        self.unseen: str | None = None
        """Progress that is not stored yet, as JSON text."""
        self.seen_at = -float("inf")
        """When progress was stored last."""
        timeout_ms = claim.timeout_ms
        self.deadline = float("inf") if timeout_ms is None else time.monotonic() + timeout_ms / 1000
        self._lock = threading.Lock()
        self._interrupt: Callable[[], object] | None = None

    def end(self, reason: BaseException) -> None:
        """Ask it to end, from any thread."""
        with self._lock:
            if self.reason is not None:
                return
            self.reason, self.asked_at = reason, time.monotonic()
            interrupt = self._interrupt
        if interrupt is not None:
            interrupt()

    def check(self) -> None:
        """Raise the reason why it should end, if there is one."""
        if self.reason is not None:
            raise self.reason

    def result_of(self, coroutine: Any) -> object:
        """Run a coroutine in an event loop of its own; its task is cancelled when it should end."""
        import asyncio

        try:
            return asyncio.run(self._awaited(coroutine))
        except asyncio.CancelledError:
            self.check()
            raise RuntimeError("the job cancelled its own task") from None

    async def _awaited(self, coroutine: Any) -> object:
        import asyncio

        task, loop = asyncio.ensure_future(coroutine), asyncio.get_running_loop()

        def interrupt() -> None:
            with suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(task.cancel)

        with self._lock:
            self._interrupt = interrupt
        if self.reason is not None:
            task.cancel()
        try:
            return await task
        finally:
            with self._lock:
                self._interrupt = None
