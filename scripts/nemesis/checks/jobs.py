"""Pure: the jobs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from ..evidence import Evidence, Execution
from .deaths import LOST, known_end, supervisor_of

ENDED = frozenset({"done", "error", "toxic", "cancelled", "expired"})
CLAIMED_S = 15.0
"""How long after a cancellation an execution that was claimed before may begin: it may be frozen."""
RIGHT = {
    "work": {"done", "toxic", "expired"},
    "raise": {"error", "toxic", "expired"},
    "die": {"toxic", "expired"},
    "slow": {"error", "toxic"},
    "overrun": {"error", "toxic"},
}
"""How a job may end, by what it does; random kills may make each of them toxic."""


def no_job_is_lost(evidence: Evidence) -> Iterator[str]:
    """Every job whose enqueuing was confirmed is stored under its number."""
    stored = {job.id: job for job in evidence.jobs}
    for enqueued in evidence.enqueued:
        if enqueued.id is None:
            continue
        job = stored.get(enqueued.id)
        if job is None:
            yield f"job {enqueued.id} ({enqueued.key}) was confirmed and is not stored"
        elif job.key != enqueued.key:
            yield f"job {enqueued.id} was confirmed as {enqueued.key} and is stored as {job.key}"


def no_job_is_enqueued_twice(evidence: Evidence) -> Iterator[str]:
    """One request to enqueue makes at most one job."""
    for key, number in Counter(job.key for job in evidence.jobs).items():
        if number > 1:
            yield f"{key} is stored {number} times"


def every_job_ends(evidence: Evidence) -> Iterator[str]:
    """After the attack every job is done, in error or toxic, as its payload says."""
    done = {each.job for each in evidence.executions if each.done is not None and each.how == "done"}
    for job in evidence.jobs:
        if job.state not in ENDED:
            yield f"job {job.id} is still {job.state} after {job.attempts} attempts"
        elif job.state not in RIGHT.get(job.do, ENDED) | {"cancelled"}:
            yield f"job {job.id} ({job.do}) ended as {job.state}"
        elif job.state == "done" and job.id not in done:
            yield f"job {job.id} is stored as done, but no worker finished it"


def executions_follow_each_other(evidence: Evidence) -> Iterator[str]:
    """An execution of a job begins after the former one has ended."""
    by_job: dict[int, list[Execution]] = defaultdict(list)
    for execution in sorted(evidence.executions, key=lambda each: each.began):
        by_job[execution.job].append(execution)
    for job, executions in by_job.items():
        former: Execution | None = None
        for execution in executions:
            if execution.holder:
                yield f"job {job}: {_named(execution)} began while {execution.holder.strip()} executed it"
            elif former is not None and former.done is not None and former.done > execution.began:
                late = former.done - execution.began
                yield f"job {job}: {_named(execution)} began {late:.3f} s before {_named(former)} was done"
            former = execution


def executions_continue_from_the_last_checkpoint(evidence: Evidence) -> Iterator[str]:
    """An execution is given the last checkpoint that was stored, or a later one that may have been."""
    by_job: dict[int, list[Execution]] = defaultdict(list)
    for execution in sorted(evidence.executions, key=lambda each: each.attempt):
        by_job[execution.job].append(execution)
    for job, executions in by_job.items():
        right: set[str | None] = {None}
        for execution in executions:
            if execution.resumed not in right:
                known = ", ".join(map(str, sorted(right, key=str)))
                yield f"job {job}: {_named(execution)} continues from {execution.resumed}, not from {known}"
            if execution.saved is not None:
                right = {execution.saved}
            right |= set(execution.unsure)


def cancelled_jobs_end_as_cancelled(evidence: Evidence) -> Iterator[str]:
    """A job whose cancellation was confirmed ends as cancelled, and no execution of it begins afterwards."""
    stored = {job.id: job for job in evidence.jobs}
    for cancelled in evidence.cancelled:
        job = stored.get(cancelled.id)
        if job is not None and job.state != "cancelled":
            yield f"job {job.id} was cancelled while it was {cancelled.state}, and ended as {job.state}"
        for execution in evidence.executions:
            if execution.job == cancelled.id and execution.began > cancelled.at + CLAIMED_S:
                late = execution.began - cancelled.at
                yield f"job {cancelled.id}: {_named(execution)} began {late:.1f} s after it was cancelled"


def _named(execution: Execution) -> str:
    return f"attempt {execution.attempt} by {execution.worker} generation {execution.generation}"


def a_job_is_blamed_for_recorded_deaths(evidence: Evidence) -> Iterator[str]:
    """A job is blamed only for deaths that are stored, and once for each."""
    died = {death.key for death in evidence.deaths}
    blamed: Counter[tuple[int, str, int]] = Counter()
    for crash in evidence.crashes:
        blamed[crash.job, crash.worker, crash.generation] += 1
        if crash.key not in died:
            yield (
                f"job {crash.job} is blamed for {crash.worker} generation {crash.generation}"
                f" ({crash.cause}), whose death is not stored"
            )
    for (job, worker, generation), number in blamed.items():
        if number > 1:
            yield f"job {job} is blamed {number} times for {worker} generation {generation}"


def killed_supervisors_convict_no_job(evidence: Evidence) -> Iterator[str]:
    """No job is blamed for a worker that ended because its supervisor was killed."""
    lives = {life.key: life for life in evidence.lives}
    causes = {death.key: death.cause for death in evidence.deaths}
    for crash in evidence.crashes:
        life = lives.get(crash.key)
        if causes.get(crash.key) == LOST:
            yield _convicted(
                crash.job, crash.worker, crash.generation, "is stored as lost with its supervisor"
            )
            continue
        if life is None or known_end(evidence, life) is not None or _was_signalled(evidence, life.key):
            continue
        run = supervisor_of(evidence, life)
        if run is not None and run.end == "killed" and crash.key not in causes:
            yield _convicted(crash.job, crash.worker, crash.generation, f"ended with supervisor {run.pid}")


def _was_signalled(evidence: Evidence, key: tuple[str, int]) -> bool:
    return any((sent.worker, sent.generation) == key for sent in evidence.signals)


def _convicted(job: int, worker: str, generation: int, why: str) -> str:
    return f"job {job} is blamed for {worker} generation {generation}, which {why}"
