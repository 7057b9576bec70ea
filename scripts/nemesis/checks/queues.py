"""Pure: jobs that come after others, batches, times and limits."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator

from ..evidence import Evidence, Execution
from ..fleet.workers_file import AT_A_TIME, GROUPS, KEY_AT_A_TIME, LIMITED, RATE

CLAIMED_S = 15.0
"""How long after its claim an execution may begin: the worker may be frozen."""
IN_FLIGHT = sum(GROUPS[name] for name in ("clerk", "loner", "guest"))
"""How many jobs may be claimed and not begun."""


def jobs_begin_after_the_jobs_before_them(evidence: Evidence) -> Iterator[str]:
    """A job that comes after others begins when they are done, and never if one of them failed."""
    stored = {job.id: job for job in evidence.jobs}
    executions = _by_job(evidence.executions)
    for enqueued in evidence.enqueued:
        for before in enqueued.after if enqueued.id in stored else ():
            done = [each.done for each in executions[before] if each.done is not None and each.how == "done"]
            for execution in executions[enqueued.id or 0]:
                if not done or execution.began < min(done):
                    yield f"job {enqueued.id} began before job {before}, which it comes after, was done"
            state, former = stored[enqueued.id or 0].state, stored.get(before)
            if former is not None and former.state != "done" and state != "cancelled":
                yield f"job {enqueued.id} is {state}, although job {before} before it is {former.state}"


def batches_end_once_with_their_counts(evidence: Evidence) -> Iterator[str]:
    """The job at the end of a batch begins after all of it, and is told how it ended."""
    stored = {job.id: job for job in evidence.jobs}
    executions = _by_job(evidence.executions)
    for last in evidence.enqueued:
        if last.ends is None or last.id not in stored:
            continue
        members = [each.id for each in evidence.enqueued if each.batch == last.ends and each.id in stored]
        for member in members:
            ran = max((each.last for each in executions[member or 0]), default=0.0)
            if any(each.began < ran for each in executions[last.id]):
                yield f"job {last.id} began before job {member} of its batch {last.ends} had ended"
        done = sum(stored[member or 0].state == "done" for member in members)
        right = {"id": last.ends, "total": len(members), "done": done, "failed": len(members) - done}
        told = stored[last.id].batch_counts
        if executions[last.id] and json.loads(told or "null") != right:
            yield f"job {last.id} is told of its batch {told}, not {right}"


def expired_jobs_never_begin(evidence: Evidence) -> Iterator[str]:
    """A job that is stored as expired was not executed, and none begins long after its time."""
    stored = {job.id: job for job in evidence.jobs}
    executions = _by_job(evidence.executions)
    for enqueued in evidence.enqueued:
        ran = executions[enqueued.id or 0]
        job = stored.get(enqueued.id or 0)
        if job is not None and job.state == "expired" and (ran or enqueued.expires is None):
            yield f"job {job.id} is stored as expired, and was executed {len(ran)} times"
        first = min(ran, key=lambda each: each.attempt, default=None)
        if enqueued.expires is not None and first is not None and first.attempt == 1:
            late = first.began - enqueued.expires
            if late > CLAIMED_S:
                yield f"job {enqueued.id} began {late:.1f} s after it had expired"


def limits_of_queues_hold(evidence: Evidence) -> Iterator[str]:
    """No more jobs of a queue or key ran at a time, and began in a time, than its limits allow."""
    limited = {job.id: job.limit_key for job in evidence.jobs if job.queue == LIMITED}
    ran = [each for each in evidence.executions if each.job in limited]
    yield from _too_many(ran, AT_A_TIME, f"jobs of {LIMITED}")
    for key in {key for key in limited.values() if key is not None}:
        yield from _too_many([e for e in ran if limited[e.job] == key], KEY_AT_A_TIME, f"jobs of key {key}")
    begins = sorted(each.began for each in ran)
    for first, since in enumerate(begins):
        for count, until in enumerate(begins[first:], 1):
            if count > RATE + RATE * (until - since) + IN_FLIGHT:
                yield f"{count} jobs of {LIMITED} began within {until - since:.2f} s"
                return


def _too_many(executions: Iterable[Execution], most: int, what: str) -> Iterator[str]:
    """Executions that certainly ran at the same time, if they are more than the limit."""
    ran = [each for each in executions if each.last > each.began]
    for execution in ran:
        beside = [each for each in ran if each.began <= execution.began < each.last]
        if len(beside) > most:
            jobs = ", ".join(str(each.job) for each in beside)
            yield f"{len(beside)} {what} ran at the same time, at most {most} may: {jobs}"
            return


def _by_job(executions: Iterable[Execution]) -> dict[int, list[Execution]]:
    found: dict[int, list[Execution]] = defaultdict(list)
    for execution in executions:
        found[execution.job].append(execution)
    return found
