"""Jobs in virtual time: the queues of a run, and what scripted processes do with the jobs that they take.

A scripted process serves its queues as a `JobWorker` does, with the same code for what it may take
(`rekindle.worker.jobs.held_jobs`). What an execution does is written in the job, so that a bad job is bad for
every worker. The queues are those of the store that the supervisor uses.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

from rekindle.worker.jobs.claims import Claim, Claimant, Claims, Ending, cancelled, failed, finished
from rekindle.worker.jobs.held_jobs import HeldJobs
from rekindle.worker.jobs.job_settings import Settings, retry_delay

from ...deaths.death import Exit
from ...facts.jobs import JobState, JobView, NewJob
from ...facts.queues import QueuePause
from ..scenarios.history import AnyEntry
from ..scenarios.job_entries import (
    JobAdded,
    JobAnswered,
    JobBegun,
    JobCancelAsked,
    JobClaimed,
    JobKept,
    JobSaved,
    QueuePaused,
    QueueResumed,
)
from ..scenarios.moves import CancelJob, Enqueue, JobFate, PauseQueue, ResumeQueue
from ..simulation_runtime import VirtualClock

if TYPE_CHECKING:
    from .scripted_process import ScriptedProcess

BEGIN_S = 0.05
"""From a claim to the beginning of the execution."""
LATE_S = 3.0
"""How long after the end of its process a late result arrives."""
IDLE_S = 5.0
OPEN = (JobState.PENDING, JobState.RUNNING)
RECONNECT_S = 1.0


@runtime_checkable
class QueuesInReach(Protocol):
    """The jobs of a store whose queues a scripted process can reach: it has no connection of its own."""

    wall_ms: Callable[[], int]
    """The clock, which the run sets."""

    def add(self, queue: str, jobs: Sequence[NewJob]) -> tuple[int, ...]: ...
    def claims(self, claimant: Claimant) -> Claims: ...
    def find(self, *, limit: int) -> tuple[JobView, ...]: ...
    def cancel(self, job_ids: Sequence[int]) -> tuple[JobState, ...]: ...
    def pause(self, queue: str, *, for_s: float | None = None) -> QueuePause: ...
    def resume(self, queue: str) -> bool: ...


class ScriptedQueues:
    """The queues of one run, over all lives of the supervisor."""

    def __init__(
        self,
        jobs: QueuesInReach,
        clock: VirtualClock,
        note: Callable[[AnyEntry], None],
        at: Callable[[float, Callable[[], None]], None],
    ) -> None:
        """Serve jobs on the clock of the run; `at` does something at a time of the scenario."""
        jobs.wall_ms = clock.wall_ms
        self.jobs = jobs
        self.clock = clock
        self.note = note
        self.at = at
        self.run = ""
        """The run of the present supervisor."""
        self.is_away = False
        """The database is not available."""
        self.is_calm = False
        """The faults have ended: every execution that begins now finishes."""
        self._idle: dict[JobServer, None] = {}

    def perform(self, move: Enqueue | CancelJob | PauseQueue | ResumeQueue) -> None:
        """Make a move on a queue."""
        match move:
            case Enqueue():
                self.enqueue(move)
            case CancelJob(queue=queue, which=which):
                self.cancel(queue, which)
            case PauseQueue(queue=queue, for_s=for_s):
                self.pause(queue, for_s)
            case ResumeQueue(queue=queue):
                self.resume(queue)

    def enqueue(self, move: Enqueue) -> None:
        """Put the jobs of a move into their queue."""
        due = self.clock.wall_ms() + round(move.in_s * 1000)
        payload = json.dumps({"takes_s": move.takes_s, "does": move.does, "times": move.times})
        new = NewJob(payload=payload, priority=move.priority, not_before_wall_ms=due)
        for job in self.jobs.add(move.queue, [new] * move.jobs):
            self.note(JobAdded(self.clock.now, job, move.queue, move.priority, due))
        self.wake()

    def cancel(self, queue: str, which: int) -> None:
        """Cancel a job that has not ended, if there is one and the database answers."""
        found = self.jobs.find(limit=1_000_000)
        jobs = sorted(job.id for job in found if job.queue == queue and job.state in OPEN)
        if jobs and not self.is_away:
            job = jobs[which % len(jobs)]
            (state,) = self.jobs.cancel([job])
            self.note(JobCancelAsked(self.clock.now, job, state.value))

    def pause(self, queue: str, for_s: float | None) -> None:
        """Have no job of the queue started, for a time."""
        paused = self.jobs.pause(queue, for_s=for_s)
        self.note(QueuePaused(self.clock.now, queue, paused.until_wall_ms))

    def resume(self, queue: str) -> None:
        """End the pause of the queue."""
        self.jobs.resume(queue)
        self.note(QueueResumed(self.clock.now, queue))
        self.wake()

    def wake(self) -> None:
        """There may be jobs: the processes that wait for one look."""
        waiting, self._idle = self._idle, {}
        for server in waiting:
            server.process.later(0.0, server.look)

    def wait(self, server: JobServer) -> None:
        """This process waits for a job."""
        if server not in self._idle:
            self._idle[server] = None
            server.process.later(IDLE_S, server.look)

    def answered(self, claimant: Claimant, ending: Ending, accepted: bool, raised_ms: int = 0) -> None:
        """Record that the end of an execution reached the store."""
        job, attempt = ending.claim.execution
        who = claimant.worker, claimant.generation
        self.note(JobAnswered(self.clock.now, *who, job, attempt, ending.state, accepted, raised_ms))

    def count(self) -> None:
        """Record what the store has."""
        for job in sorted(self.jobs.find(limit=1_000_000), key=lambda each: each.id):
            counts = job.attempts, job.crash_count
            self.note(JobKept(self.clock.now, job.id, job.state, *counts, job.checkpoint))


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
        self.process.later(takes_s / 2, lambda: self._save_half(claim))
        self.process.later(takes_s, lambda: self._conclude(claim, does))

    def cancel(self, job: int, attempt: int) -> None:
        """The supervisor asks the execution to end; one that does something bad does not obey."""
        claim = self._obedient.get(job)
        if claim is not None and claim.attempt == attempt and not self.process.hung:
            del self._obedient[job]
            self._exchange(cancelled(claim))

    def _is_over(self, claim: Claim) -> bool:
        """Whether the execution has ended before its time."""
        return self.begun.get(claim.id) != claim.attempt

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
        if self.process.hung or (does is JobFate.FINISHES and self._obedient.pop(claim.id, None) is None):
            return
        match does:
            case JobFate.FINISHES:
                self._exchange(finished(claim, None))
            case JobFate.RAISES:
                delay = retry_delay(self._settings, claim.error_count + 1, claim.max_retries)
                now = self._queues.clock.wall_ms()
                self._exchange(failed(claim, "it raised", delay, now), now)
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
        accepted = self._claims.exchange(ending, None).accepted
        self._queues.answered(self._claimant, ending, accepted is True)
