"""A store with queues, and workers that claim from them, over every implementation."""

from __future__ import annotations

from typing import Any

from tests.contract.records import death

from rekindle.actors.facts.jobs import JobSettled, JobView, NewJob
from rekindle.actors.facts.records import ClaimsReleased, FormerClaimsReleased
from rekindle.actors.ports import Store
from rekindle.persistence.jobs.memory_jobs import MemoryJobs
from rekindle.worker.jobs.claims import Claim, Claimant, ClaimRequest, Claims, QueueUnavailableError, finished
from rekindle.worker.jobs.queue_address import open_claims

TAG = "worker:tag:0"
RUN = "run"
NOW = 1_790_000_000_000


def new(payload: str = "{}", **settings: Any) -> NewJob:
    """A job to be put into a queue."""
    return NewJob(payload=payload, **settings)


class Queues:
    """One store, the workers that serve it, and what a supervisor records of them."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.jobs = store.jobs
        self._claims: dict[Claimant, Claims] = {}

    def add(self, queue: str = "tag", **settings: Any) -> int:
        """The number of a new job."""
        return self.jobs.add(queue, [new(**settings)])[0]

    def claims(self, worker: str = TAG, generation: int = 1, run: str = RUN) -> Claims:
        """A worker's own connection; not for the store in memory."""
        assert self.store.address is not None
        claimant = Claimant(worker, generation, run)
        if claimant not in self._claims:
            self._claims[claimant] = open_claims(self.store.address, claimant)
        return self._claims[claimant]

    def claim(self, queue: str = "tag", **who: Any) -> Any:
        """What a worker gets of a queue; None if there is nothing."""
        if isinstance(self.jobs, MemoryJobs):
            who = {"worker": TAG, "generation": 1, "run": RUN, **who}
            return self.jobs.claim(queue, **who)
        return self.claims(**who).exchange(None, ClaimRequest((queue,))).claim

    def finish(self, claim: Any, result: str | None = None, **who: Any) -> bool:
        """Whether a worker's result was taken."""
        if isinstance(self.jobs, MemoryJobs):
            assert isinstance(claim, JobView)
            return self.jobs.finish(claim, result)
        assert isinstance(claim, Claim)
        claims = self.claims(**who)
        try:
            return bool(claims.exchange(finished(claim, result), None).accepted)
        except QueueUnavailableError:
            # The session of one that was taken for dead was ended; it comes again, as a worker does.
            return bool(claims.exchange(finished(claim, result), None).accepted)

    def end(
        self, worker: str = TAG, generation: int = 1, *, counted: bool = True, **evidence: Any
    ) -> tuple[JobSettled, ...]:
        """What became of the jobs of a worker that is gone; a death that counts is recorded first."""
        if counted:
            self.record_death(worker, generation)
        record = ClaimsReleased(
            component_id=worker, generation=generation, run=evidence.pop("run", RUN),
            at_wall_ms=evidence.pop("at_wall_ms", NOW),
            counted=counted, **evidence,
        )  # fmt: skip
        return self.store.commit([record])

    def record_death(self, worker: str = TAG, generation: int = 1, **changes: object) -> None:
        """Have the supervisor record that a worker was killed."""
        self.store.commit([death(generation, component_id=worker, **changes)])

    def crash(self, job_id: int, times: int = 1, first_generation: int = 1, **evidence: Any) -> None:
        """Have workers die on a job, one after the other."""
        for generation in range(first_generation, first_generation + times):
            claim = self.claim(generation=generation)
            assert claim is not None
            assert claim.id == job_id
            self.end(generation=generation, **evidence)

    def start_next_run(self, run: str = "next run", **retries: int | None) -> tuple[JobSettled, ...]:
        """What becomes of jobs when a supervisor starts after another one was killed."""
        return self.store.commit([FormerClaimsReleased(run=run, at_wall_ms=NOW, crash_retries=retries)])

    def close(self) -> None:
        """End the workers' connections."""
        for claims in self._claims.values():
            claims.close()
