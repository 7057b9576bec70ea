"""Pure: what the end of a process leads to beside the decision about a restart.

The claims on the jobs that it was executing are released, and count as a crash of those jobs or
not. An end that an operator asked for leaves evidence beside that of the deaths: it is not a death
and does not count, but it shows why a worker is down, and what it was doing when it had to be killed.
"""

from __future__ import annotations

from ...deaths.crash_bundle import bundle_of
from ...deaths.death import Cause, Death, Exit
from ...deaths.evidence import Remains
from ...deaths.findings import made_room_for_others
from ...facts.jobs import ErrorRetries
from ...facts.records import EndKept
from ...messages.internal.to_desks import IncarnationEnded
from ..worker import Effect, KeepRecord, ReleaseJobs, Stopping, SupervisedWorker, World


def claims_after_death(worker: SupervisedWorker, death: Death) -> tuple[Effect, ...]:
    """A recorded death counts, independent of the decision on it, unless its jobs cannot be the cause."""
    counted = not (_was_signalled_by_order(death) or _made_room(death))
    return _release(worker, death.generation, str(death), death.exit, death.remains, counted=counted)


def _was_signalled_by_order(death: Death) -> bool:
    """Whether it ended by the signal that it was sent last: by an operator, as it had not been found dead."""
    sent = None if death.remains is None else death.remains.sent
    return death.cause is Cause.SIGNALLED and sent is not None and sent == death.exit.signal


def _made_room(death: Death) -> bool:
    """Whether it ended because others had used up the memory of the machine."""
    return death.remains is not None and made_room_for_others(death.exit, death.remains)


def claims_after_late_end(
    worker: SupervisedWorker, generation: int, cause: str, exit_: Exit, remains: Remains | None
) -> tuple[Effect, ...]:
    """The same for a process that was declared dead first and ended later: until then it may have worked."""
    return _release(worker, generation, cause, exit_, remains, counted=True)


def claims_after_stop(worker: SupervisedWorker, generation: int, exit_: Exit) -> tuple[Effect, ...]:
    """A requested stop does not count, however the process ended: it is not a death."""
    return _release(worker, generation, str(exit_), exit_, counted=False)


def _release(
    worker: SupervisedWorker,
    generation: int,
    cause: str,
    exit_: Exit,
    remains: Remains | None = None,
    *,
    counted: bool,
) -> tuple[Effect, ...]:
    # A changed spec may name no queue; the process that ended may have been given some.
    jobs = worker.spec.jobs if worker.spec.serves else worker.jobs
    if jobs is None:
        return ()
    end = IncarnationEnded(
        component_id=worker.id,
        generation=generation,
        counted=counted,
        crash_retries=jobs.crash_retries,
        cause=cause,
        exit=exit_,
        output=() if remains is None else tuple(text for _, text in remains.output),
        begun=None if remains is None else remains.begun_jobs,
        error_retries=ErrorRetries(jobs.error_retries, jobs.retry_delay_s, jobs.max_retry_delay_s),
    )
    return (ReleaseJobs(end),)


def evidence_of_stop(
    worker: SupervisedWorker, phase: Stopping, exit_: Exit, remains: Remains | None, world: World
) -> tuple[Effect, ...]:
    """What is persisted of it: nothing during a shutdown, or if its exit status is unknown."""
    if phase.reason is None or not phase.reason.is_an_order or world.stopping or exit_ == Exit():
        return ()
    ended = Death(
        component_id=worker.id,
        generation=phase.generation,
        cause=exit_.cause,
        exit=exit_,
        detail=phase.reason.value,
        uptime_ms=max(0, world.now_ms - phase.since_ms),
        job=worker.job,
    )
    bundle = bundle_of(ended, world.wall_ms, exit_, remains, asked=True, cwd=worker.spec.cwd)
    return (KeepRecord(EndKept(bundle)),)
