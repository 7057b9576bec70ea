"""The executions of this process: they end in time, or when they are cancelled, and show their progress."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ..claims import Claims, QueueUnavailableError
from .execution import ClaimLostError, Execution, JobCancelledError, JobTimeoutError

PROGRESS_S = 1.0
"""How often the progress of one execution is stored at most."""


class Executions:
    """Every execution that has begun and has not ended.

    A thread of its own watches those that have a time limit or show progress, so that neither costs the
    job anything. It is started with the first of them.
    """

    def __init__(self, connect: Callable[[], Claims]) -> None:
        self._connect = connect
        self._claims: Claims | None = None
        self._running: dict[tuple[int, int], Execution] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def begin(self, execution: Execution) -> None:
        """An execution begins; its time runs."""
        with self._changed:
            self._running[execution.claim.execution] = execution
            if execution.deadline != float("inf"):
                self._watch()

    def end(self, execution: Execution) -> None:
        """It has ended."""
        with self._changed:
            self._running.pop(execution.claim.execution, None)

    def cancel(self, job: int, attempt: int) -> None:
        """Ask an execution to end; one that has ended already is not concerned."""
        with self._changed:
            execution = self._running.get((job, attempt))
        if execution is not None:
            execution.end(JobCancelledError(f"job {job} was cancelled"))

    def show(self, execution: Execution, progress: str) -> None:
        """Have progress stored, soon: what follows within a second replaces it."""
        with self._changed:
            is_awaited, execution.unseen = execution.unseen is not None, progress
            if not is_awaited:
                self._watch()

    def refused(self, execution: Execution, claims: Claims) -> None:
        """The queue accepts nothing more of this execution: it was cancelled, or its claim is lost."""
        job, attempt = execution.claim.execution
        if any(claim.execution == (job, attempt) for claim in claims.mine()):
            execution.end(JobCancelledError(f"job {job} was cancelled"))
        else:
            execution.end(ClaimLostError(f"job {job} was given to another worker"))

    def only_overdue(self, grace_s: float) -> bool:
        """Whether every execution that is left should have ended this long ago; False if none is left."""
        with self._changed:
            asked_at = [execution.asked_at for execution in self._running.values()]
        return bool(asked_at) and max(asked_at) + grace_s <= time.monotonic()

    # ── the thread that watches ──────────────────────────────────────────────────────────

    def _watch(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="rekindle-jobs", daemon=True)
            self._thread.start()
        self._changed.notify()

    def _serve(self) -> None:
        while True:
            with self._changed:
                self._changed.wait(self._pause_s())
                running = tuple(self._running.values())
            now = time.monotonic()
            for execution in running:
                if execution.deadline <= now:
                    execution.deadline = float("inf")
                    limit_s = (execution.claim.timeout_ms or 0) / 1000
                    execution.end(JobTimeoutError(f"timed out after {limit_s:g} s"))
                if _shows_at(execution) <= now:
                    self._store(execution)

    def _pause_s(self) -> float | None:
        due = min((min(each.deadline, _shows_at(each)) for each in self._running.values()), default=None)
        if due is None or due == float("inf"):
            return None
        return min(max(0.0, due - time.monotonic()), threading.TIMEOUT_MAX)

    def _store(self, execution: Execution) -> None:
        with self._changed:
            progress, execution.unseen, execution.seen_at = execution.unseen, None, time.monotonic()
        if self._claims is None:
            self._claims = self._connect()
        try:
            if progress is not None and not self._claims.show(execution.claim, progress):
                self.refused(execution, self._claims)
        except QueueUnavailableError:
            pass  # the next progress is stored instead


def _shows_at(execution: Execution) -> float:
    return float("inf") if execution.unseen is None else execution.seen_at + PROGRESS_S
