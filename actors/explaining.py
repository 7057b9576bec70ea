"""Pure: why a worker is as it is, in sentences.

Why it is down, where its counters stand, when it is tried again, and what an operator can do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .deaths import Cause, Exit
from .health import Status
from .messages import WorkerStatus
from .records import DeathRecord


def explain(worker: WorkerStatus, deaths: Sequence[DeathRecord] = ()) -> str:
    """Everything worth knowing of one worker, one sentence a line."""
    return "\n".join(_sentences(worker, deaths))


def _sentences(worker: WorkerStatus, deaths: Sequence[DeathRecord]) -> Iterator[str]:
    yield _state(worker)
    if worker.paused:
        yield _pause(worker)
    if deaths:
        yield _last_death(deaths[0], worker.failure_reason)
    yield from _budget(worker)
    advice = _advice(worker)
    if advice:
        yield advice


def _state(worker: WorkerStatus) -> str:
    name = worker.component_id
    match worker.shown:
        case "starting" if worker.waits_for:
            return f"{name} is to start, and waits until {' and '.join(worker.waits_for)} is healthy."
        case "starting":
            return f"{name} is starting (pid {worker.pid}) and has not said yet that it is healthy."
        case "healthy" if worker.status is not Status.HEALTHY:
            return f"{name} runs (pid {worker.pid}), but is {worker.status}."
        case "healthy":
            return f"{name} is healthy: pid {worker.pid}, up for {span(worker.uptime_s or 0)}."
        case "crashed" if worker.next_attempt_in_s is not None:
            when = span(worker.next_attempt_in_s)
            return f"{name} crashed and is started again in {when} ({worker.why})."
        case "failed":
            return f"{name} was given up: {worker.failure_reason}."
        case _:
            return f"{name} is {worker.shown}: {worker.why}."


def _pause(worker: WorkerStatus) -> str:
    reason = f" ({worker.pause_reason})" if worker.pause_reason else ""
    if worker.pause_ends_in_s is None:
        return f"It is paused{reason} until somebody resumes it."
    return f"It is paused{reason}; the pause ends by itself in {span(worker.pause_ends_in_s)}."


def _last_death(death: DeathRecord, said: str | None) -> str:
    how = str(Exit(death.exit_code, death.signal))
    if death.cause not in (Cause.EXITED, Cause.SIGNALLED, Cause.UNKNOWN):
        known = death.signal is not None or death.exit_code is not None
        how = death.cause.value.replace("_", " ") + (f", {how}" if known else "")
    decision = "" if death.reason == said else f" Decision: {death.reason}."
    left = "" if death.work_item is None else f" Its work item {death.work_item}: {death.released}."
    return (
        f"Its last death (generation {death.generation}) came after {span(death.uptime_ms / 1000)}: "
        f"{how}.{decision}{left}"
    )


def _budget(worker: WorkerStatus) -> Iterator[str]:
    budget = worker.budget
    used = []
    if budget.max_in_window is not None:
        used.append(f"{budget.in_window} of {budget.max_in_window} within {span(budget.window_s)}")
    if budget.max_lifetime is not None:
        used.append(f"{budget.lifetime} of {budget.max_lifetime} in its lifetime")
    if budget.max_consecutive is not None:
        used.append(f"{budget.consecutive} of {budget.max_consecutive} in a row")
    if used:
        yield f"Restarts used: {', '.join(used)}."


def _advice(worker: WorkerStatus) -> str:
    name = worker.component_id
    if worker.paused:
        return f"To go on: rekindle resume, or rekindle resume {name} if it was paused alone."
    match worker.shown:
        case "failed" if worker.retried_if_changed:
            return (
                "A changed version will be tried by itself, at the next reload or start of the supervisor; "
                f"to try this one again: rekindle restart {name} (clears the counters and starts it)."
            )
        case "failed":
            return f"Mend the cause, then: rekindle restart {name} (clears the counters and starts it)."
        case "crashed" if worker.next_attempt_in_s is not None:
            return f"To start it now: rekindle start {name}; to hold it: rekindle pause {name}."
        case "crashed" | "stopped":
            return f"To start it: rekindle start {name}."
        case _:
            return ""


def span(seconds: float) -> str:
    """A duration as people say it."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.3g} s"
    if seconds < 3600:
        return f"{seconds / 60:.3g} min"
    if seconds < 86400:
        return f"{seconds / 3600:.3g} h"
    return f"{seconds / 86400:.3g} days"
