"""Pure: the supervisors themselves, and what they leave behind."""

from __future__ import annotations

from collections.abc import Iterator
from signal import SIGTERM

from ..evidence import Evidence, SupervisorRun
from .deaths import supervisor_of

GONE_S = 5.0
"""How long the workers of a supervisor that was killed may take to end on a busy machine."""

START_S = 5.0
"""A database that is away within this time of a start may keep the supervisor from starting."""


def no_supervisor_ends_by_itself(evidence: Evidence) -> Iterator[str]:
    """A supervisor runs until it is stopped or killed, unless it cannot open its database at its start."""
    for run in evidence.supervisors:
        if run.end == "itself" and not (run.code == 1 and _away(evidence, run.began, run.ended)):
            age = run.ended - run.began
            yield f"supervisor {run.pid} ended by itself after {age:.1f} s with code {run.code}"


def clean_stops_end_with_0(evidence: Evidence) -> Iterator[str]:
    """A supervisor that is stopped while its database answers ends with 0, once it has started a worker."""
    for run in evidence.supervisors:
        is_early = run.code == -SIGTERM and not any(life.supervisor == run.pid for life in evidence.lives)
        if run.end == "stopped" and run.code != 0 and not is_early and not _away_at_the_stop(evidence, run):
            yield f"supervisor {run.pid} was stopped and ended with {run.code}"


def _away_at_the_stop(evidence: Evidence, run: SupervisorRun) -> bool:
    ordered = run.ended if run.stop_ordered is None else run.stop_ordered
    return _away(evidence, ordered - START_S, run.ended)


def _away(evidence: Evidence, began: float, ended: float) -> bool:
    return any(outage.began <= ended and outage.ended >= began for outage in evidence.outages)


def no_process_is_left(evidence: Evidence) -> Iterator[str]:
    """When a supervisor has ended, its workers end too, and the last one leaves none."""
    for life in evidence.lives:
        run = supervisor_of(evidence, life)
        if run is not None and life.last > run.ended + GONE_S:
            yield f"{life} still wrote {life.last - run.ended:.1f} s after its supervisor {run.pid} had ended"
    yield from evidence.orphans


def every_worker_returns(evidence: Evidence) -> Iterator[str]:
    """After the attack every worker reaches the state that is wanted."""
    yield from evidence.unreached


def the_log_has_no_traceback(evidence: Evidence) -> Iterator[str]:
    """The supervisors log no exception of their own."""
    yield from evidence.tracebacks
