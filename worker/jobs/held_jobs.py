"""What the threads of one worker share: the jobs in hand, and how many of them raised in a row."""

from __future__ import annotations

import threading

from ..handle import Worker
from .claims import Claim, ClaimRequest, Claims, Ending, Exchanged, given_back


class HeldJobs:
    """The jobs that this process executes. Claiming and ending happen one at a time.

    One at a time, because whether a suspect may be taken depends on what the others hold, and
    because after an exchange whose outcome is unknown a claim that nobody knows of must be told
    from one that another thread is just being given.
    """

    def __init__(self, worker: Worker, queues: tuple[str, ...], *, isolate: bool) -> None:
        self._worker = worker
        self._queues = queues
        self._isolate = isolate
        self._lock = threading.Lock()
        self._held: dict[int, Claim] = {}
        self._errors_in_a_row = 0

    def exchange(self, claims: Claims, ending: Ending | None, *, more: bool) -> Exchanged:
        """Let go of one job and take another; see `Claims.exchange`."""
        with self._lock:
            ends = None if ending is None else ending.claim.execution
            others = [claim for claim in self._held.values() if claim.execution != ends]
            exchanged = claims.exchange(ending, self._request(others) if more else None)
            return self._note_held(ending, exchanged)

    def resume(self, claims: Claims, ending: Ending | None, *, more: bool) -> Exchanged:
        """The same after an exchange whose outcome is unknown: a claim that it made is found again."""
        with self._lock:
            accepted = None
            if ending is not None:
                accepted = claims.exchange(ending, None).accepted or claims.was_recorded(ending)
            # The job that ends may have been put back, and claimed anew by what was not answered.
            held = {each.execution for each in self._held.values()}
            claim = next((each for each in claims.mine() if each.execution not in held), None)
            if claim is not None and not more:
                claims.exchange(given_back(claim), None)
                claim = None
            return self._note_held(ending, Exchanged(accepted, claim))

    def count_error(self) -> int:
        """Note that a job raised; how many did in a row."""
        with self._lock:
            self._errors_in_a_row += 1
            return self._errors_in_a_row

    def count_success(self) -> None:
        """Note that a job was done."""
        self._errors_in_a_row = 0

    def _request(self, others: list[Claim]) -> ClaimRequest | None:
        if any(claim.alone for claim in others):
            return None  # a suspect is executed, and by a worker that does nothing else
        return ClaimRequest(self._queues, free=not others, isolate=self._isolate)

    def _let_go(self, claim: Claim) -> None:
        """Forget a job that ended; it may have been put back, and be in another thread's hands by now."""
        held = self._held.get(claim.id)
        if held is not None and held.execution == claim.execution:
            del self._held[claim.id]

    def _note_held(self, ending: Ending | None, exchanged: Exchanged) -> Exchanged:
        if ending is not None:
            self._let_go(ending.claim)
        if exchanged.claim is not None:
            self._held[exchanged.claim.id] = exchanged.claim
        # Told before the execution begins: should the worker die of it, this is the job that it names.
        job = next(reversed(self._held), None)
        if job != self._worker.current_job:
            self._worker.current_job = job
        return exchanged
