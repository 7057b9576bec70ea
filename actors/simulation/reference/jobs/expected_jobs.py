"""Pure: jobs, recomputed from claims, checkpoints, answers, deaths and releases.

A job is executed by one process at a time, and its checkpoints and its result are taken from the claim in
force only; the next execution continues from the last checkpoint. No job of a paused queue begins. The end of
a process releases its claims; that counts against a job once for each recorded death in which it had begun,
and a job that has used up its retries is toxic. Nothing else changes a job, and none is lost.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from ....spec.policies.retention_policy import Retention
from ...scenarios.history import Announced, Concluded, Decided, Ended, Stored, SupervisorStarted
from ...scenarios.jobs.job_entries import (
    JobAdded,
    JobAnswered,
    JobBegun,
    JobCancelAsked,
    JobClaimed,
    JobExpired,
    JobKept,
    JobReleased,
    JobSaved,
    QueueLimited,
    QueuePauseBegan,
    QueuePauseEnded,
)
from ...scenarios.known_state import Facts
from ..promise import EXACT_S, SETTLED_S, Deadlines, Promise
from .job_chains import Chains
from .known_job import Incarnation, KnownJob
from .queue_limits import ExpectedLimits

KEPT = Retention()
"""What is kept of the past where nothing else is said."""
RELEASES = {"pending": "job_requeued", "toxic": "job_convicted", "cancelled": "job_cancelled"}
"""The event of a release, by the state of the job after it."""
LATE_S = 30.0
"""How much later than it may a job ends with its process at the latest: its worker has to report it first."""


def _days_kept(state: str) -> float | None:
    ended = ("done", "error", "cancelled")
    return KEPT.job_days if state in ended else KEPT.history_days if state == "toxic" else None


class ExpectedJobs(Promise):
    """Jobs are executed one at a time, in order, blamed for what they did, and never lost."""

    rule: ClassVar[str] = "jobs"

    def __init__(self, facts: Facts, deadlines: Deadlines) -> None:
        super().__init__(facts, deadlines)
        self._jobs: dict[int, KnownJob] = {}
        self._chains = Chains(self._jobs)
        self._limits = ExpectedLimits()
        self._is_blameless: dict[Incarnation, bool] = {}
        """The cause of each death as it was decided last; a decision may be lost with its supervisor."""
        self._recorded: set[Incarnation] = set()
        """The deaths in the store."""
        self._pauses: dict[str, int | None] = {}
        """Until when each paused queue is paused, by the wall clock; None: without end."""
        self._seen: dict[int, float] = {}
        """When each job was last read from the store."""

    def hears(self) -> Mapping[type, Callable[[Any], Iterator[str] | None]]:
        """What happens to jobs, and the ends of processes; nothing if no worker serves a queue."""
        if not any(worker.spec.serves for worker in self.facts.workers.values()):
            return {}
        return {
            SupervisorStarted: self._supervisor_started,
            Decided: self._decided,
            Stored: self._stored,
            Ended: self._ended,
            JobAdded: self._added,
            JobClaimed: self._claimed,
            JobBegun: self._begun,
            JobSaved: self._saved,
            JobCancelAsked: self._cancel_asked,
            QueuePauseBegan: self._paused,
            QueuePauseEnded: self._resumed,
            QueueLimited: self._limits.changed,
            JobExpired: self._expired,
            JobAnswered: self._answered,
            JobReleased: self._released,
            Announced: self._announced,
            JobKept: self._kept,
            Concluded: self._concluded,
        }

    def _added(self, entry: JobAdded) -> None:
        self._jobs[entry.job] = KnownJob.of(entry)

    def _end(self, job: KnownJob, state: str) -> None:
        """A job is in this state from now on, with all that follows from it."""
        job.state = state
        if not job.is_open:
            self._chains.ended(job)

    def _running(self, queue: str) -> list[KnownJob]:
        return [job for job in self._jobs.values() if (job.queue, job.state) == (queue, "running")]

    def _held_by(self, whose: Incarnation) -> list[KnownJob]:
        return [job for job in self._jobs.values() if job.state == "running" and job.holder == whose]

    # ── claims ───────────────────────────────────────────────────────────────────────────

    def _claimed(self, entry: JobClaimed) -> Iterator[str]:
        job, who = self._jobs[entry.job], f"{entry.worker} #{entry.generation}"
        if job.state != "pending":
            yield f"job {job.number} is claimed by {who} while it is {job.state}"
        elif entry.wall_ms < job.due_ms:
            yield f"job {job.number} is claimed by {who} {(job.due_ms - entry.wall_ms) / 1000:g} s early"
        if not job.has_ended:
            former = f"{job.holder[0]} #{job.holder[1]}" if job.holder else "a process"
            yield f"job {job.number} is claimed by {who} before its execution by {former} has ended"
        if entry.attempt != job.attempts + 1:
            yield f"job {job.number} is claimed for attempt {entry.attempt}, not {job.attempts + 1}"
        if entry.checkpoint != job.checkpoint:
            yield f"{who} continues job {job.number} from {entry.checkpoint}, not from {job.checkpoint}"
        if self._is_paused(job.queue, entry.wall_ms):
            yield f"job {job.number} is claimed by {who} although its queue {job.queue} is paused"
        if job.is_over(entry.wall_ms):
            yield f"job {job.number} is claimed by {who} although it has expired"
        yield from self._order(job, entry, who)
        yield from self._company(job, entry, who)
        yield from self._limits.broken(job, entry, self._running(job.queue))
        isolate = self._policy(entry.worker).isolates
        job.state, job.attempts, job.holder = "running", entry.attempt, (entry.worker, entry.generation)
        job.life, job.has_begun, job.has_ended = self.facts.life, False, False
        job.claimed_at, job.claimed_ms = entry.at, entry.wall_ms
        job.is_alone = isolate and job.crashes > 0
        self._expect_end(job)

    def _policy(self, worker: str) -> Any:
        return self.facts.workers[worker].spec.jobs

    def _order(self, job: KnownJob, entry: JobClaimed, who: str) -> Iterator[str]:
        """Smaller priorities first, then the longest due; jobs whose key is at its limit are passed over."""
        running = self._running(job.queue)
        for other in self._jobs.values():
            if other.state != "pending" or other.queue != job.queue or other.due_ms > entry.wall_ms:
                continue
            if other.is_over(entry.wall_ms) or self._limits.holds_back(other, entry.wall_ms, running):
                continue
            if other.rank < job.rank:
                yield f"job {job.number} is claimed by {who} before job {other.number}"

    def _company(self, job: KnownJob, entry: JobClaimed, who: str) -> Iterator[str]:
        """A suspect runs alone where the policy says so."""
        if not self._policy(entry.worker).isolates:
            return
        for other in self._held_by((entry.worker, entry.generation)):
            if other.is_alone or job.crashes:
                yield f"{who} executes job {job.number} beside job {other.number}, although one is a suspect"

    def _begun(self, entry: JobBegun) -> None:
        self._jobs[entry.job].has_begun = True

    def _paused(self, entry: QueuePauseBegan) -> None:
        self._pauses[entry.queue] = entry.until_ms

    def _resumed(self, entry: QueuePauseEnded) -> None:
        self._pauses.pop(entry.queue, None)

    def _is_paused(self, queue: str, wall_ms: int) -> bool:
        until_ms = self._pauses.get(queue, 0)
        return until_ms is None or wall_ms < until_ms

    def _cancel_asked(self, entry: JobCancelAsked) -> Iterator[str]:
        job = self._jobs[entry.job]
        if not job.is_cancelled:  # its time to end by itself counts from the first request
            job.is_cancelled, job.cancelled_at = job.state == "running", entry.at
        if job.state in ("pending", "waiting"):
            self._end(job, "cancelled")
        if entry.state != job.state:
            yield f"job {job.number} is {entry.state} after it was cancelled, not {job.state}"

    def _saved(self, entry: JobSaved) -> Iterator[str]:
        job, whose = self._jobs[entry.job], (entry.worker, entry.generation)
        name = f"the checkpoint of {entry.worker} #{entry.generation} for job {job.number}"
        is_last = (job.holder, job.attempts) == (whose, entry.attempt)
        is_in_force = job.state == "running" and is_last and not job.is_cancelled
        if entry.accepted != is_in_force:
            word, force = ("accepted", "not in force") if entry.accepted else ("refused", "in force")
            yield f"{name} is {word} although its claim is {force}"
        if entry.accepted:
            job.checkpoint = entry.checkpoint

    def _answered(self, entry: JobAnswered) -> Iterator[str]:
        job = self._jobs[entry.job]
        whose = (entry.worker, entry.generation)
        is_last = (job.holder, job.attempts) == (whose, entry.attempt)
        is_in_force = job.state == "running" and is_last
        name = (
            f"the answer of {entry.worker} #{entry.generation} for job {job.number}, attempt {entry.attempt},"
        )
        if is_last:
            job.has_ended = True
        may_end = is_in_force and job.is_cancelled == (entry.state == "cancelled")
        if entry.accepted and not may_end:
            yield f"{name} is accepted although its claim is not in force, or was cancelled"
        if not entry.accepted and may_end:
            yield f"{name} is refused although its claim is in force"
        if is_in_force and job.is_cancelled:
            self._end(job, "cancelled")
        if not entry.accepted or job.is_cancelled:
            return
        if entry.state == "done":
            job.crashes, job.checkpoint = 0, None
        else:
            job.errors += 1
            yield from self._after_error(job, entry, entry.raised_ms)
        self._end(job, entry.state)

    def _after_error(self, job: KnownJob, entry: JobAnswered | JobReleased, failed_ms: int) -> Iterator[str]:
        policy = self._policy(entry.worker)
        again = job.errors <= policy.error_retries
        if again != (entry.state == "pending"):
            yield f"job {job.number} is {entry.state} after {job.errors} errors"
        if again:
            delay_s = min(policy.retry_delay_s * 2.0 ** (job.errors - 1), policy.max_retry_delay_s)
            job.due_ms = failed_ms + round(delay_s * 1000)

    # ── the ends of processes ────────────────────────────────────────────────────────────

    def _decided(self, entry: Decided) -> None:
        whose = (entry.worker, entry.generation)
        if whose not in self._recorded:
            self._is_blameless[whose] = entry.cause == "supervisor_lost" or entry.action == "held"

    def _stored(self, entry: Stored) -> None:
        if entry.kind == "death" and entry.worker is not None:
            self._recorded.add((entry.worker, entry.generation))

    def _supervisor_started(self, entry: SupervisorStarted) -> None:
        for whose in {job.holder for job in self._jobs.values() if job.state == "running" and job.holder}:
            self._expect_release(whose, entry.at)

    def _ended(self, entry: Ended) -> None:
        whose = (entry.worker, entry.generation)
        for job in self._jobs.values():
            if job.holder == whose:
                job.has_ended = True
        if entry.by != "cleanup" and self._held_by(whose):
            self._expect_release(whose, entry.at)

    def _expect_release(self, whose: Incarnation, due: float) -> None:
        def why() -> str | None:
            held = self._held_by(whose)
            if held and not self.store_is_settled(due):
                self._expect_release(whose, due + SETTLED_S)
                return None
            name = f"{whose[0]} #{whose[1]}"
            return f"job {held[0].number} is still held by {name}, which has ended" if held else None

        self.by(whose, due, why)

    def _released(self, entry: JobReleased) -> Iterator[str]:
        job, whose = self._jobs[entry.job], (entry.worker, entry.generation)
        name = f"job {job.number} of {entry.worker} #{entry.generation}"
        if job.state != "running" or job.holder != whose:
            yield f"{name} is released, but that process does not hold it"
        if not job.has_ended:
            yield f"{name} is released before the end of the process"
        is_late = job.takes_too_long(entry.wall_ms) and job.life == self.facts.life
        if entry.timed_out and (job.is_cancelled or entry.counted or not is_late):
            yield f"{name} is said to have taken too long"
        if entry.timed_out:
            yield from self._time_out(job, entry, name)
        else:
            yield from (self._pardon if job.is_cancelled else self._blame)(job, entry, whose, name)
            if is_late and not job.is_cancelled and not entry.counted:
                yield f"{name} took too long, and is {entry.state} as if it had not"
        job.crashes = entry.crash_count
        self._end(job, entry.state)
        word = "job_timed_out" if entry.timed_out else RELEASES[entry.state]
        key = (word, str(job.number), entry.generation)
        self.by(key, entry.at, lambda: f"{word} of {name} is not announced")

    def _pardon(self, job: KnownJob, entry: JobReleased, _: Incarnation, name: str) -> Iterator[str]:
        """A cancelled job is cancelled, and the end of its process counts against no job."""
        if (entry.state, entry.crash_count, entry.counted) != ("cancelled", job.crashes, False):
            yield f"{name} was cancelled, and is {entry.state} with {entry.crash_count} crashes"

    def _time_out(self, job: KnownJob, entry: JobReleased, name: str) -> Iterator[str]:
        """A job that takes too long has failed, and neither it nor its worker has crashed."""
        job.errors += 1
        yield from self._after_error(job, entry, entry.wall_ms)
        if entry.crash_count != job.crashes:
            yield f"{name} took too long, and has {entry.crash_count} crashes, not {job.crashes}"

    def _blame(self, job: KnownJob, entry: JobReleased, whose: Incarnation, name: str) -> Iterator[str]:
        died = whose in self._recorded and not self._is_blameless.get(whose)
        # What a process had begun is not in the store: for the next supervisor every claim was begun.
        begun = job.has_begun or job.life != self.facts.life
        counts = died and begun and whose not in job.blamed_for
        if entry.counted != counts:
            why = "recorded" if died else "not recorded"
            started = "begun" if begun else "not begun"
            word = "counts" if entry.counted else "does not count"
            yield f"the end of its process {word} against {name}: its death is {why}, the job had {started}"
        crashes = job.crashes + entry.counted
        retries = self._policy(entry.worker).crash_retries
        toxic = entry.counted and retries is not None and crashes > retries
        if (entry.state, entry.crash_count) != ("toxic" if toxic else "pending", crashes):
            yield f"{name} is {entry.state} with {entry.crash_count} crashes after {crashes} of {retries}"
        if entry.counted:
            job.blamed_for.add(whose)

    def _announced(self, entry: Announced) -> Iterator[str]:
        if entry.event == "job_timed_out" or entry.event in RELEASES.values():
            self.done((entry.event, entry.about, entry.generation))
        if entry.event == "worker_recycled" and entry.worker is not None:
            yield from self._recycled(entry.worker, entry.at)

    # ── time ─────────────────────────────────────────────────────────────────────────────

    def _expired(self, entry: JobExpired) -> Iterator[str]:
        job = self._jobs[entry.job]
        if job.state != "pending" or not job.is_over(entry.wall_ms):
            yield f"job {job.number}, which is {job.state} after {job.attempts} attempts, expires early"
        self._end(job, "expired")

    def _expect_end(self, job: KnownJob) -> None:
        """An execution that takes too long is ended with its process, while its supervisor can do so."""
        if job.timeout_ms is None or job.holder is None:
            return
        worker, attempt = self.facts.workers[job.holder[0]], job.attempts
        grace_s = self._policy(job.holder[0]).cancel_grace_s + worker.spec.stop.total_s
        due, clock = job.claimed_at + job.timeout_ms / 1000 + grace_s + LATE_S, self.facts.clock_range

        def why() -> str | None:
            is_same = (job.state, job.attempts, job.life) == ("running", attempt, self.facts.life)
            ordered = max(worker.ordered_at, worker.recycled_at, worker.status_since) >= job.claimed_at
            is_up = worker.status == "healthy" and not ordered and clock == self.facts.clock_range
            if not is_same or not is_up or job.has_ended or not self.store_is_settled(due - LATE_S):
                return None
            return f"job {job.number} runs on at {due:g}, although it may take {job.timeout_ms} ms"

        self.by(("timeout", job.number, attempt), due, why)

    def _recycled(self, worker: str, at: float) -> Iterator[str]:
        """No process is ended for a job before that job has had its time, and some more to end by itself."""
        if self.facts.workers[worker].spec.recycle is not None or self._policy(worker) is None:
            return
        held = [job for job in self._jobs.values() if job.state == "running" and job.holder]
        grace_s = self._policy(worker).cancel_grace_s
        if not any(
            job.holder[0] == worker and self._may_be_ended(job, at - grace_s) for job in held if job.holder
        ):
            yield f"{worker} gets a new process, although no job of it had to end"

    def _may_be_ended(self, job: KnownJob, at: float) -> bool:
        if job.is_cancelled and job.cancelled_at <= at + EXACT_S:
            return True
        if job.timeout_ms is None:
            return False
        since = job.claimed_at + (0 if self.facts.clock_range != (0.0, 0.0) else job.timeout_ms / 1000)
        return since <= at + EXACT_S

    # ── the store ────────────────────────────────────────────────────────────────────────

    def _kept(self, entry: JobKept) -> Iterator[str]:
        job = self._jobs[entry.job]
        self._seen[entry.job] = entry.at
        if (entry.state, entry.attempts, entry.crash_count) != (job.state, job.attempts, job.crashes):
            has = f"{entry.state} after {entry.attempts} attempts and {entry.crash_count} crashes"
            yield f"job {job.number} is {has}, not {job.state} after {job.attempts} and {job.crashes}"
        if entry.checkpoint != job.checkpoint:
            yield f"job {job.number} has the checkpoint {entry.checkpoint}, not {job.checkpoint}"
        told = None if entry.batch_counts is None else json.loads(entry.batch_counts)
        if told != job.batch_counts:
            yield f"job {job.number} is told of its batch {told}, not {job.batch_counts}"

    def _may_be_old(self, job: KnownJob) -> bool:
        """Whether the clock was set so far that the job may be one of long ago, which is deleted."""
        back, forward = self.facts.clock_range
        days = _days_kept(job.state)
        return days is not None and forward - back >= days * 86_400

    def _concluded(self, entry: Concluded) -> Iterator[str]:
        for job in self._jobs.values():
            if self._seen.get(job.number) != entry.at and not self._may_be_old(job):
                yield f"job {job.number} is lost"
            if job.state == "running" and job.holder is not None and job.holder[0] not in entry.left:
                yield f"job {job.number} is still held by {job.holder[0]} #{job.holder[1]} at the end"
