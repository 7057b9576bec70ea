"""The queues without a database, for tests and simulations: the `Jobs` port and a worker's `Claims`."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence

from loguru import logger
from msgspec.structs import replace

from rekindle.actors.deaths.death import Exit
from rekindle.actors.errors import RequestRefusedError, UnknownJobError
from rekindle.actors.facts.jobs import (
    BLAMELESS,
    JobCrash,
    JobSettled,
    JobState,
    JobView,
    NewJob,
    QueueStats,
    queue_stats,
    refused_drop,
    sound_count,
    with_pauses,
)
from rekindle.actors.facts.records import ClaimsReleased, DeathRecord, FormerClaimsReleased
from rekindle.actors.rules.job_verdicts import verdict_after_crash, verdict_if_ended_for_it
from rekindle.actors.spec.policies.retention_policy import Retention
from rekindle.actors.system.queues.watched_jobs import JobResults
from rekindle.worker.jobs.claims import Claimant

from ..database.wall_clock import wall_ms
from .chains.memory_chains import MemoryChains
from .memory_claims import MemoryClaims
from .memory_views import crash_of, cut, has_expired, may_expire, outdated, same_job, timed_out

Deaths = Mapping[tuple[str, int], DeathRecord]
"""The recorded deaths, by worker and generation."""


class MemoryJobs(MemoryChains, JobResults):
    """Keeps the jobs in a dictionary. No process but this one can reach them."""

    def __init__(self, wall_ms: Callable[[], int] = wall_ms) -> None:
        super().__init__(wall_ms)
        self._numbers = itertools.count(1)
        self._runs: dict[int, tuple[str, bool]] = {}
        """By claimed job: the run of the claimant, and whether the job is executed alone."""
        self.expired: Callable[[int], None] = lambda _job: None
        """Called with every job that expires, before anything follows from it; a simulation sets its own."""

    def add(self, queue: str, jobs: Sequence[NewJob]) -> tuple[int, ...]:
        """Put the jobs into the queue; return their numbers."""
        return tuple(self._same(queue, job) or self._add(queue, job) for job in jobs)

    def _same(self, queue: str, job: NewJob) -> int | None:
        """The latest job that stands in the way of a unique one."""
        if (unique := job.unique) is None:
            return None
        return same_job(self._jobs.values(), queue, unique, self.wall_ms())

    def _add(self, queue: str, job: NewJob) -> int:
        waits_for = self.predecessors(job)
        now, id_ = self.wall_ms(), next(self._numbers)
        self._after[id_] = waits_for
        self._jobs[id_] = JobView(
            id=id_,
            queue=queue,
            state=(JobState.WAITING if waits_for else JobState.PENDING).value,
            payload=job.payload,
            priority=job.priority,
            attempts=0,
            crash_count=0,
            error_count=0,
            max_retries=job.max_retries,
            crash_retries=job.crash_retries,
            unique_key=None if job.unique is None else job.unique.key,
            claimed_by=None,
            claimed_generation=None,
            created_at_wall_ms=now,
            not_before_wall_ms=now if job.not_before_wall_ms is None else job.not_before_wall_ms,
            started_at_wall_ms=None,
            finished_at_wall_ms=None,
            toxic_since_wall_ms=None,
            result=None,
            error=None,
            timeout_ms=job.timeout_ms,
            retry_delay_ms=job.retry_delay_ms,
            max_retry_delay_ms=job.max_retry_delay_ms,
            expires_at_wall_ms=job.expires_at_wall_ms,
            key=job.key,
            traceparent=job.traceparent,
            waits_for=len(waits_for) if job.after else None,
        )
        return id_

    def get(self, job_id: int) -> JobView:
        """One job, or `UnknownJobError`."""
        if job_id not in self._jobs:
            raise UnknownJobError(job_id)
        return self._jobs[job_id]

    def find(
        self,
        *,
        queue: str | None = None,
        state: str | None = None,
        limit: int = 100,
        longest: int | None = None,
    ) -> tuple[JobView, ...]:
        """Jobs, newest first."""
        newest = sorted(self._jobs.values(), key=lambda job: -job.id)
        chosen = (job for job in newest if queue in (None, job.queue) and state in (None, job.state))
        return tuple(cut(job, longest) for job in itertools.islice(chosen, max(limit, 0)))

    def taken_by(
        self, component_id: str, *, since_wall_ms: int = 0, limit: int = 100, longest: int | None = None
    ) -> tuple[JobView, ...]:
        """The jobs that this worker was the last to claim, latest first."""
        taken = [job for job in self._jobs.values() if job.claimed_by == component_id]
        newest = sorted(taken, key=lambda job: (job.started_at_wall_ms or 0, job.id), reverse=True)
        chosen = (job for job in newest if (job.started_at_wall_ms or 0) >= since_wall_ms)
        return tuple(cut(job, longest) for job in itertools.islice(chosen, max(limit, 0)))

    def named(self, job_ids: Collection[int], *, longest: int | None = None) -> tuple[JobView, ...]:
        """The jobs with these numbers, as far as they exist, in order of number."""
        known = (self._jobs[job_id] for job_id in sorted(set(job_ids)) if job_id in self._jobs)
        return tuple(cut(job, longest) for job in known)

    def traced(self, after: tuple[int, int], *, limit: int) -> tuple[JobView, ...]:
        """The jobs of traces that ended after this time and number, in that order."""
        ended = [job for job in self._jobs.values() if job.traceparent and (_end(job) or (0, 0)) > after]
        return tuple(cut(job, 1) for job in sorted(ended, key=lambda job: _end(job) or (0, 0))[:limit])

    def crashes(self, job_ids: Sequence[int]) -> tuple[JobCrash, ...]:
        """The evidence against jobs, oldest first."""
        return tuple(crash for crash in self._crashes if crash.job_id in job_ids)

    def stats(self) -> tuple[QueueStats, ...]:
        """The figures of every queue that has jobs, by name."""
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        busy_ms: Counter[str] = Counter()
        for job in self._jobs.values():
            counts[job.queue][job.state] += 1
            if job.state == JobState.DONE:
                took = (job.finished_at_wall_ms or 0) - (job.started_at_wall_ms or 0)
                busy_ms[job.queue] += max(0, took)
        stats = (queue_stats(queue, counts=counts[queue], busy_ms=busy_ms[queue]) for queue in counts)
        return with_pauses(stats, self.pauses())

    def limited(self) -> tuple[JobView, ...]:
        """The running jobs that are cancelled, have a time limit, or show their progress."""
        return tuple(
            job
            for job in self._jobs.values()
            if job.state == JobState.RUNNING
            and (job.timeout_ms, job.cancel_requested_at_wall_ms, job.progress) != (None, None, None)
        )

    def next_expiry(self) -> int | None:
        """When the next pending job expires, or should have."""
        times = (job.expires_at_wall_ms for job in self._jobs.values() if may_expire(job))
        return min((at for at in times if at is not None), default=None)

    def expire(self, now_wall_ms: int) -> tuple[int, ...]:
        """Let the jobs expire that have not begun in time; their numbers."""
        late = [job.id for job in self._jobs.values() if has_expired(job, now_wall_ms)]
        for job_id in late:
            self._change(job_id, state=JobState.EXPIRED.value, finished_at_wall_ms=now_wall_ms)
        return tuple(late)

    def drop(self, job_ids: Sequence[int]) -> None:
        """Delete jobs that are not running, with the evidence against them, all or none."""
        for job in map(self.get, job_ids):
            if job.state == JobState.RUNNING:
                raise RequestRefusedError(f"job {job.id} is running: it cannot be dropped now")
            if self.is_waited_for(job.id):
                raise RequestRefusedError(refused_drop(job.id))
        for job_id in job_ids:
            del self._jobs[job_id]
        self._crashes = [crash for crash in self._crashes if crash.job_id not in job_ids]

    def prune_old(self, retention: Retention, now_wall_ms: int) -> None:
        """Delete the finished jobs that are too old or too many."""
        self.drop(outdated(self._jobs.values(), retention, now_wall_ms))
        self.prune_batches(now_wall_ms - round(retention.job_days * 86_400_000))

    def prune(self, *, finished_before_wall_ms: int) -> int:
        """Delete the jobs that were done before this time; return how many."""
        old = [
            job.id
            for job in self._jobs.values()
            if job.state == JobState.DONE and (job.finished_at_wall_ms or 0) < finished_before_wall_ms
        ]
        self.drop(old)
        return len(old)

    # ── what a worker does ───────────────────────────────────────────────────────────────

    def claims(self, claimant: Claimant) -> MemoryClaims:
        """What a worker has instead of a connection."""
        return MemoryClaims(self, claimant)

    def claim(
        self,
        queue: str,
        worker: str,
        generation: int,
        run: str,
        *,
        alone: bool = False,
        free: bool = True,
        isolate: bool = False,
    ) -> JobView | None:
        """Claim the first due job of a queue, as a worker would; `isolate`: a suspect only if it is free."""
        now = self.wall_ms()
        for job in self._due(queue):
            if has_expired(job, now):
                self._change(job.id, state=JobState.EXPIRED.value, finished_at_wall_ms=now)
        due = self._due(queue)
        if not due:
            return None
        first = min(due, key=lambda job: (job.priority, job.not_before_wall_ms, job.id))
        is_suspect = isolate and first.crash_count > 0
        if is_suspect and not free:
            return None
        self._runs[first.id] = (run, alone or is_suspect)
        self.take_tokens(queue, first.key)
        return self._change(
            first.id,
            state=JobState.RUNNING.value,
            attempts=first.attempts + 1,
            claimed_by=worker,
            claimed_generation=generation,
            started_at_wall_ms=now,
            progress=None,
        )

    def is_suspect_due(self, queue: str) -> bool:
        """Whether a job on which a worker died waits in this queue."""
        return any(job.crash_count > 0 for job in self._due(queue))

    def _due(self, queue: str) -> list[JobView]:
        if self.is_paused(queue):
            return []
        now, of_queue = self.wall_ms(), [job for job in self._jobs.values() if job.queue == queue]
        running = [job.key for job in of_queue if job.state == JobState.RUNNING]
        return [
            job
            for job in of_queue
            if job.state == JobState.PENDING
            and job.not_before_wall_ms <= now
            and not self.is_held_back(queue, job.key, running)
        ]

    def finish(self, claim: JobView, result: str | None = None) -> bool:
        """Record a result; False if the claim is stale."""
        return self.end(
            claim.id,
            claim.attempts,
            state=JobState.DONE.value,
            result=result,
            error=None,
            crash_count=0,
            finished_at_wall_ms=self.wall_ms(),
        )

    def end(self, job_id: int, attempt: int, **changes: object) -> bool:
        """Record how an execution ended; False if its claim is not in force."""
        now = self._jobs.get(job_id)
        if now is None or now.state != JobState.RUNNING or now.attempts != attempt:
            return False
        if now.cancel_requested_at_wall_ms is None or changes["state"] == JobState.CANCELLED:
            self._change(job_id, **changes)
            return True
        self._change(
            job_id,
            state=JobState.CANCELLED.value,
            error=changes.get("error"),
            finished_at_wall_ms=self.wall_ms(),
        )
        return False

    def is_alone(self, job_id: int) -> bool:
        """Whether a claimed job is executed alone."""
        return self._runs[job_id][1]

    def of_claimant(self, worker: str, generation: int, run: str) -> tuple[JobView, ...]:
        """The jobs that this incarnation holds."""
        return tuple(
            job
            for job in self._jobs.values()
            if job.state == JobState.RUNNING
            and (job.claimed_by, job.claimed_generation, self._runs[job.id][0]) == (worker, generation, run)
        )

    # ── the jobs of dead workers ─────────────────────────────────────────────────────────

    def release(self, end: ClaimsReleased, deaths: Deaths) -> list[JobSettled]:
        """Requeue the jobs that one incarnation had claimed, or mark them toxic."""
        held = self.of_claimant(end.component_id, end.generation, end.run)
        return [self._settle(job, self._as_recorded(job, end, deaths)) for job in held]

    def release_former(self, record: FormerClaimsReleased, deaths: Deaths) -> list[JobSettled]:
        """The same for every claim of other runs."""
        return [
            self._settle(
                job,
                self._as_recorded(job, record.of(job.claimed_by or "", job.claimed_generation or 0), deaths),
            )
            for job in tuple(self._jobs.values())
            if job.state == JobState.RUNNING and self._runs[job.id][0] != record.run
        ]

    def _as_recorded(self, job: JobView, end: ClaimsReleased, deaths: Deaths) -> ClaimsReleased:
        """The end; it counts only if the death is recorded and not yet held against the job."""
        worker = (end.component_id, end.generation)
        death = deaths.get(worker)
        blamed = any((each.component_id, each.generation) == worker for each in self.crashes([job.id]))
        if (
            job.cancel_requested_at_wall_ms is not None
            or not end.may_blame(job.id, job.attempts)
            or death is None
            or {death.cause, death.action} & BLAMELESS
            or blamed
        ):
            return replace(end, counted=False)
        exit_ = Exit(death.exit_code, death.signal)
        if end.cause:
            return end
        return replace(end, cause=str(exit_), exit_code=exit_.code, signal=exit_.signal)

    def _settle(self, job: JobView, end: ClaimsReleased) -> JobSettled:
        count = sound_count(job.crash_count)
        if count is None:
            logger.warning(
                "store: job {} has an invalid crash count, taken as 0: {!r}", job.id, job.crash_count
            )
        _, alone = self._runs.pop(job.id)
        retries = end.crash_retries if job.crash_retries is None else job.crash_retries
        verdict = verdict_if_ended_for_it(job, end, count or 0) or verdict_after_crash(
            count or 0, counted=end.counted, retries=retries, alone=alone
        )
        at = end.at_wall_ms
        self._change(
            job.id,
            state=verdict.state.value,
            crash_count=verdict.crash_count,
            error=verdict.error or job.error,
            toxic_since_wall_ms=at if verdict.state is JobState.TOXIC else None,
            finished_at_wall_ms=None if verdict.state is JobState.PENDING else at,
            **(timed_out(job, end, verdict) if verdict.timed_out else {}),
        )
        if end.counted:
            self._crashes.append(crash_of(job, end))
        return JobSettled(
            job_id=job.id,
            queue=job.queue,
            component_id=end.component_id,
            generation=end.generation,
            state=verdict.state,
            crash_count=verdict.crash_count,
            counted=end.counted,
            timed_out=verdict.timed_out,
        )

    def note(self, job_id: int, **notes: object) -> bool:
        """Store what an execution says of itself; not if it was cancelled."""
        if self.get(job_id).cancel_requested_at_wall_ms is not None:
            return False
        self._change(job_id, **notes)
        return True

    def _change(self, job_id: int, **changes: object) -> JobView:
        before = self._jobs[job_id].state
        changed = self._jobs[job_id] = replace(self._jobs[job_id], **changes)
        if changed.state == JobState.EXPIRED:
            self.expired(job_id)
        self.follow(before, changed)
        return changed


def _end(job: JobView) -> tuple[int, int] | None:
    return None if job.finished_at_wall_ms is None else (job.finished_at_wall_ms, job.id)
