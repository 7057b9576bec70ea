"""Pure: when an end of a worker's process is held against the jobs that it was executing."""

from __future__ import annotations

from ..deaths.death import Death, Exit
from ..messages.internal import IncarnationEnded
from .worker import Effect, ReleaseJobs, Worker


def after_death(worker: Worker, death: Death) -> tuple[Effect, ...]:
    """A death counts, whatever is decided on it."""
    return _released(worker, death.generation, str(death), death.exit, output=death.output, counted=True)


def after_late_end(worker: Worker, generation: int, cause: str, exit_: Exit) -> tuple[Effect, ...]:
    """The same where the process was taken for dead first and ended later: until then it may have worked."""
    return _released(worker, generation, cause, exit_, counted=True)


def after_stop(worker: Worker, generation: int, exit_: Exit, forced: int | None) -> tuple[Effect, ...]:
    """A stop on request counts for nothing, save where the worker crashed before a signal of ours came."""
    crashed = forced is None and (exit_.signal is not None or exit_.code not in (None, 0))
    return _released(worker, generation, str(exit_), exit_, counted=crashed)


def _released(
    worker: Worker,
    generation: int,
    cause: str,
    exit_: Exit,
    *,
    counted: bool,
    output: tuple[str, ...] = (),
) -> tuple[Effect, ...]:
    # A spec that was changed may name no queue any more; the process that ended was told of some.
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
        output=output,
    )
    return (ReleaseJobs(end),)
