"""Jobs in virtual time: what scripted processes do with the jobs that they take.

A scripted process serves its queues as a `JobWorker` does, with the same code for what it may take
(`rekindle.worker.jobs.held_jobs`). What an execution does is written in the job, so that a bad job is bad for
every worker. The queues are those of the store that the supervisor uses.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from rekindle.worker.jobs.claims import Claim, Claimant, Ending, cancelled, failed, finished
from rekindle.worker.jobs.held_jobs import HeldJobs
from rekindle.worker.jobs.job_settings import Settings, retry_delay

from ...deaths.death import Exit
from ..scenarios.jobs.job_entries import JobBegun, JobClaimed, JobSaved
from ..scenarios.jobs.job_moves import JobFate
from .scripted_queues import ScriptedQueues

if TYPE_CHECKING:
    from .scripted_process import ScriptedProcess

BEGIN_S = 0.05
"""From a claim to the beginning of the execution."""
LATE_S = 3.0
"""How long after the end of its process a late result arrives."""
RECONNECT_S = 1.0


class JobServer:
    """The part of one scripted process that serves queues; several jobs at a time have a thread each."""

    def __init__(self, process: ScriptedProcess, queues: ScriptedQueues) -> None:
        self.process = process
        self.begun: dict[int, int] = {}
        """The attempt of each job whose execution began and has not ended."""
        self._obedient: dict[int, Claim] = {}
        """The claims of executions that end when they are asked to."""
        self._queues = queues
        request = process.request
        jobs = request.spec.jobs
        assert jobs is not None
        self._settings = Settings(
            error_retries=jobs.error_retries,
            retry_delay_s=jobs.retry_delay_s,
            max_retry_delay_s=jobs.max_retry_delay_s,
        )
        self._claimant = Claimant(request.spec.id, request.generation, queues.run, supervised=True)
        self._claims = queues.jobs.claims(self._claimant)
        self._held = HeldJobs(cast("Any", self), jobs.queues, isolate=jobs.isolates)
        self._threads = jobs.concurrency
        """How many do nothing."""
        self._busy = 0
        self._stops: Callable[[], None] | None = None
        self._current: int | None = None

    @property
    def current_job(self) -> int | None:
        """The job that is reported, as `rekindle.worker.Worker` has it."""
        return self._current

    @current_job.setter
    def current_job(self, job: int | None) -> None:
        self._current = job
        self.process.heartbeats.report_job(job)

    def look(self) -> None:
        """Let every thread that does nothing take a job."""
        free, self._threads = self._threads, 0
        for _ in range(free):
            self._exchange(None)

    def stop(self, then: Callable[[], None]) -> None:
        """Take no further job, and end after the present ones."""
        self._stops = then
        if not self._busy:
            then()

    def _exchange(self, ending: Ending | None, raised_ms: int = 0) -> None:
        """One thread records the end of its job and takes the next one."""
        process, queues = self.process, self._queues
        if process.hung:
            return
        if queues.is_away:
            process.later(RECONNECT_S, lambda: self._exchange(ending, raised_ms))
            return
        more = self._stops is None and not process.heartbeats.idle
        with queues.one_exchange():
            exchanged = self._held.exchange(self._claims, ending, more=more)
            if ending is not None:
                self._busy -= 1
                self.begun.pop(ending.claim.id, None)
                queues.answered(self._claimant, ending, exchanged.accepted is True, raised_ms)
        if exchanged.claim is not None:
            self._take(exchanged.claim)
            return
        self._threads += 1
        if self._stops is None:
            queues.wait(self)
        elif not self._busy:
            self._stops()

    def _take(self, claim: Claim) -> None:
        queues, who = self._queues, self._claimant
        self._busy += 1
        now, wall_ms = queues.clock.now, queues.clock.wall_ms()
        queues.note(JobClaimed(now, who.worker, who.generation, *claim.execution, wall_ms, claim.checkpoint))
        told = json.loads(claim.payload)
        is_bad = claim.attempt <= told["times"] and not queues.is_calm
        does = JobFate(told["does"]) if is_bad else JobFate.FINISHES
        if does is JobFate.DIES_EARLY:
            self.process.later(BEGIN_S / 2, self._die)
        else:
            self.process.later(BEGIN_S, lambda: self._begin(claim, does, told["takes_s"]))

    def _begin(self, claim: Claim, does: JobFate, takes_s: float) -> None:
        if self.process.hung:
            return
        now, who = self._queues.clock.now, self._claimant
        self._queues.note(JobBegun(now, who.worker, who.generation, *claim.execution))
        self.begun[claim.id] = claim.attempt
        if does is JobFate.FINISHES:
            self._obedient[claim.id] = claim
            if claim.timeout_ms is not None:
                self.process.later(claim.timeout_ms / 1000, lambda: self._time_out(claim))
        self.process.later(takes_s / 2, lambda: self._save_half(claim))
        self.process.later(takes_s, lambda: self._conclude(claim, does))

    def cancel(self, job: int, attempt: int) -> None:
        """The supervisor asks the execution to end; one that does something bad does not obey."""
        claim = self._obedient.get(job)
        if claim is not None and claim.attempt == attempt and not self.process.hung:
            del self._obedient[job]
            self._exchange(cancelled(claim))

    def _time_out(self, claim: Claim) -> None:
        """The worker asks the execution to end, because it takes too long."""
        if self._obedient.get(claim.id) == claim and not self.process.hung:
            del self._obedient[claim.id]
            self._fail(claim, "timed out")

    def _fail(self, claim: Claim, error: str) -> None:
        delay = retry_delay(self._settings, claim.error_count + 1, claim.max_retries)
        now = self._queues.clock.wall_ms()
        self._exchange(failed(claim, error, delay, now), now)

    def _is_over(self, claim: Claim) -> bool:
        """Whether the execution has ended before its time."""
        return self.begun.get(claim.id) != claim.attempt

    def _may_end(self, claim: Claim) -> bool:
        """Whether an execution that obeys continues until its end; another one of the job may have begun."""
        if self._obedient.get(claim.id) != claim:
            return False
        del self._obedient[claim.id]
        return True

    def _save_half(self, claim: Claim) -> None:
        if not self._is_over(claim):
            self._save(claim, "half")

    def _save(self, claim: Claim, word: str) -> None:
        """Store how far the execution came; a database that is away is not waited for."""
        queues, who = self._queues, self._claimant
        if self.process.hung or queues.is_away:
            return
        text = json.dumps(f"{word} of attempt {claim.attempt}")
        accepted = self._claims.save(claim, text)
        whose = queues.clock.now, who.worker, who.generation
        queues.note(JobSaved(*whose, *claim.execution, text, accepted))

    def _conclude(self, claim: Claim, does: JobFate) -> None:
        if self.process.hung or (does is JobFate.FINISHES and not self._may_end(claim)):
            return
        match does:
            case JobFate.FINISHES:
                self._exchange(finished(claim, None))
            case JobFate.RAISES:
                self._fail(claim, "it raised")
            case JobFate.OVERRUNS:
                pass  # until its process is ended
            case JobFate.HANGS:
                self.process.hang()
            case JobFate.ANSWERS_LATE:
                self._die()
                self._later(lambda: self._arrive(claim))
            case _:
                self._die()

    def _die(self) -> None:
        self.process.end(Exit(code=1), "itself")

    def _later(self, what: Callable[[], None]) -> None:
        """What was sent before the process ended arrives."""
        self._queues.at(self._queues.clock.now + LATE_S, what)

    def _arrive(self, claim: Claim) -> None:
        if self._queues.is_away:
            self._later(lambda: self._arrive(claim))
            return
        self._save(claim, "late part")
        ending = finished(claim, None)
        with self._queues.one_exchange():
            accepted = self._claims.exchange(ending, None).accepted
            self._queues.answered(self._claimant, ending, accepted is True)
