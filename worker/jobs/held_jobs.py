"""What the threads of one worker share: the jobs that they hold, and how many raised in a row."""

from __future__ import annotations

import threading
from dataclasses import replace

from ..handle import Worker
from .claims import Claim, ClaimRequest, Claims, Ending, Exchanged, given_back


class HeldJobs:
    """The jobs that this process executes. Claiming and ending happen one at a time.

    The reasons: whether a suspect may be taken depends on what the other threads hold; and after an
    exchange whose outcome is unknown, a lost claim must be distinguished from one that another thread
    is receiving.
    """

    def __init__(self, worker: Worker, queues: tuple[str, ...], *, isolate: bool) -> None:
        self._worker = worker
        self._queues = queues
        self._isolate = isolate
        self._lock = threading.Lock()
        self._job_ended = threading.Condition(self._lock)
        self._held: dict[int, Claim] = {}
        self._errors_in_a_row = 0

    def exchange(self, claims: Claims, ending: Ending | None, *, more: bool) -> Exchanged:
        """End one job and take another; see `Claims.exchange`."""
        with self._lock:
            ends = None if ending is None else ending.claim.execution
            others = [claim for claim in self._held.values() if claim.execution != ends]
            request = self._request(others) if more else None
            exchanged = claims.exchange(ending, request)
            if more and request is None:
                exchanged = replace(exchanged, held_back=True)
            return self._note_held(ending, exchanged)

    def resume(self, claims: Claims, ending: Ending | None, *, more: bool) -> Exchanged:
        """The same after an exchange whose outcome is unknown: a claim that it made is found again."""
        with self._lock:
            accepted = None
            if ending is not None:
                accepted = claims.exchange(ending, None).accepted or claims.was_recorded(ending)
            # The job that ends may have been put back, and claimed again by the unanswered exchange.
            held = {each.execution for each in self._held.values()}
            claim = next((each for each in claims.mine() if each.execution not in held), None)
            if claim is not None and not more:
                claims.exchange(given_back(claim), None)
                claim = None
            return self._note_held(ending, Exchanged(accepted, claim))

    def wait_for_an_end(self, longest_s: float) -> None:
        """Return when another thread has ended its job: then this one may take a job that is held back."""
        with self._job_ended:
            if self._held:
                self._job_ended.wait(longest_s)

    def count_error(self) -> int:
        """Count a job that raised; how many did in a row."""
        with self._lock:
            self._errors_in_a_row += 1
            return self._errors_in_a_row

    def count_success(self) -> None:
        """End the row of errors."""
        self._errors_in_a_row = 0

    def _request(self, others: list[Claim]) -> ClaimRequest | None:
        if any(claim.alone for claim in others):
            return None  # a suspect is running, and must run alone
        return ClaimRequest(self._queues, free=not others, isolate=self._isolate)

    def _let_go(self, claim: Claim) -> None:
        """Forget a job that ended; it may have been put back, and another thread may hold it by now."""
        held = self._held.get(claim.id)
        if held is not None and held.execution == claim.execution:
            del self._held[claim.id]
            self._job_ended.notify_all()

    def _note_held(self, ending: Ending | None, exchanged: Exchanged) -> Exchanged:
        if ending is not None:
            self._let_go(ending.claim)
        if exchanged.claim is not None:
            self._held[exchanged.claim.id] = exchanged.claim
        # Reported before the execution begins: if the worker dies of it, the supervisor knows the job.
        job = next(reversed(self._held), None)
        if job != self._worker.current_job:
            self._worker.current_job = job
        return exchanged
