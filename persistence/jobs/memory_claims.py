"""A worker's claims on queues that are kept in memory, for simulations."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from rekindle.actors.facts.jobs import JobView
from rekindle.worker.jobs.claims import Claim, Claimant, ClaimRequest, Ending, Exchanged, Taken

from .job_rows import job_errors, job_progress

if TYPE_CHECKING:
    from .memory_jobs import MemoryJobs


class MemoryClaims:
    """The `Claims` of `MemoryJobs`."""

    def __init__(self, jobs: MemoryJobs, claimant: Claimant) -> None:
        self._jobs = jobs
        self._claimant = claimant

    def exchange(self, ending: Ending | None, request: ClaimRequest | None) -> Exchanged:
        """Record an ending and claim the next job."""
        accepted = None if ending is None else self._end(ending)
        exchanged = Exchanged() if request is None else self._claim(request)
        return replace(exchanged, accepted=accepted)

    def mine(self) -> tuple[Claim, ...]:
        """Every claim of this claimant that is in force."""
        who = self._claimant
        held = self._jobs.of_claimant(who.worker, who.generation, who.run)
        return tuple(self._claim_on(job) for job in held)

    def was_recorded(self, ending: Ending) -> bool:
        """Whether an ending was recorded."""
        job = self._jobs.get(ending.claim.id)
        return (job.attempts, job.state) == (ending.claim.attempt, ending.state)

    def save(self, claim: Claim, checkpoint: str) -> bool:
        """Store how far the execution came; False: the claim is no longer in force, or is cancelled."""
        return self._is_mine(claim) and self._jobs.note(claim.id, checkpoint=checkpoint)

    def show(self, claim: Claim, progress: str) -> bool:
        """Store what the execution shows of its progress; False: as above."""
        return self._is_mine(claim) and self._jobs.note(claim.id, progress=job_progress(progress))

    def _is_mine(self, claim: Claim) -> bool:
        return any(each.execution == claim.execution for each in self.mine())

    def take(self, queue: str, key: str, payload: str) -> Taken:
        """Claim the job beside one that another queue delivered."""
        raise NotImplementedError("no worker of another queue runs in a simulation")

    def idle(self, queues: tuple[str, ...], longest_s: float, interruption: int) -> None:
        """Return at once: in a simulation nothing waits."""

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def _end(self, ending: Ending) -> bool:
        claim, given = ending.claim, ending.values
        changes: dict[str, Any] = {"state": ending.state}
        if ending.state == "done":
            changes |= {"result": given.get("result"), "error": None, "crash_count": 0, "checkpoint": None}
        elif "error" in given:
            changes |= {"error": given["error"], "error_count": self._jobs.get(claim.id).error_count + 1}
            changes["errors"] = job_errors(given["errors"])
        if ending.state in ("done", "error", "cancelled"):
            changes["finished_at_wall_ms"] = self._jobs.wall_ms()
        if "not_before" in given:
            changes["not_before_wall_ms"] = given["not_before"]
        return self._jobs.end(claim.id, claim.attempt, **changes)

    def _claim(self, request: ClaimRequest) -> Exchanged:
        who = self._claimant
        for queue in request.queues:
            job = self._jobs.claim(
                queue, who.worker, who.generation, who.run, free=request.free, isolate=request.isolate
            )
            if job is not None:
                return Exchanged(claim=self._claim_on(job))
            if request.isolate and not request.free and self._jobs.is_suspect_due(queue):
                return Exchanged(held_back=True)
        return Exchanged()

    def _claim_on(self, job: JobView) -> Claim:
        return Claim(
            job.id,
            job.queue,
            job.payload,
            job.attempts,
            job.crash_count,
            job.error_count,
            job.max_retries,
            self._jobs.is_alone(job.id),
            job.checkpoint,
            job.timeout_ms,
            job.retry_delay_ms,
            job.max_retry_delay_ms,
            msgspec.json.encode(job.errors).decode(),
            traceparent=job.traceparent,
        )
