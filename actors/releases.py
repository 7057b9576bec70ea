"""Pure: when an end of a worker's process is held against the jobs that it was executing."""

from __future__ import annotations

from .deaths import Death, Exit
from .internal_messages import IncarnationEnded
from .spec import WorkerSpec
from .worker_state import Effect, ReleaseJobs


def after_death(spec: WorkerSpec, death: Death) -> tuple[Effect, ...]:
    """A death counts, whatever is decided on it."""
    return _released(spec, death.generation, str(death), death.exit, output=death.output, counted=True)


def after_late_end(spec: WorkerSpec, generation: int, cause: str, exit_: Exit) -> tuple[Effect, ...]:
    """The same where the process was taken for dead first and ended later: until then it may have worked."""
    return _released(spec, generation, cause, exit_, counted=True)


def after_stop(spec: WorkerSpec, generation: int, exit_: Exit, forced: int | None) -> tuple[Effect, ...]:
    """A stop on request counts for nothing, save where the worker crashed before a signal of ours came."""
    crashed = forced is None and (exit_.signal is not None or exit_.code not in (None, 0))
    return _released(spec, generation, str(exit_), exit_, counted=crashed)


def _released(
    spec: WorkerSpec,
    generation: int,
    cause: str,
    exit_: Exit,
    *,
    counted: bool,
    output: tuple[str, ...] = (),
) -> tuple[Effect, ...]:
    if spec.jobs is None or not spec.serves:
        return ()
    end = IncarnationEnded(
        component_id=spec.id,
        generation=generation,
        counted=counted,
        crash_retries=spec.jobs.crash_retries,
        cause=cause,
        exit=exit_,
        output=output,
    )
    return (ReleaseJobs(end),)
