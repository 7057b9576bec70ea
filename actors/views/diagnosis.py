"""Pure: the state of a worker in fields, beside the sentences of `explanation`."""

from __future__ import annotations

import msgspec

from ..deaths.death import Cause
from ..facts.health_status import ShownStatus, Status
from ..facts.records import DeathRecord
from ..messages import Budget, GroupStatus, WorkerStatus


class LastDeath(msgspec.Struct, frozen=True, kw_only=True):
    """The newest persisted death of a worker."""

    generation: int
    at_wall_ms: int
    cause: Cause
    exit: int | None
    signal: int | None
    decision: str
    """Why it was restarted or not, in words."""


class WorkerDiagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """Why a worker is in its current state: in sentences, and in fields for programs."""

    id: str
    text: str
    """The sentences of `rekindle explain`, one per line."""
    component_id: str
    """The same as `id`, under the name that it has everywhere else."""
    status: ShownStatus
    """The state in one word."""
    health: Status | None
    """The exact health; None without a process."""
    code: str
    """Why it is in this state: `running`, `starting`, `waits_for`, `backoff`, `given_up`, or the
    `why_code` of its status."""
    reason: str
    """The same in words; empty while it runs."""
    pid: int | None
    generation: int
    paused: bool
    cause: Cause | None
    """The cause of its newest death; None without one."""
    exit: int | None
    """The exit code of its newest death."""
    signal: int | None
    """The signal that ended it then."""
    last_death: LastDeath | None
    budget: Budget
    """The restarts used and allowed, by limit."""
    next_attempt_in_s: float | None
    """When it is started again; None: not on its own."""
    last_error: str
    """The last line that it wrote about an error before it died; empty while it runs."""
    left: list[int]
    """The processes that it left behind when it died, which were ended."""
    commands: list[str]
    """What an operator can run now."""
    groups: list[GroupStatus]
    """The groups that it stands and falls with, the enclosing ones first."""
    source: str = ""
    """Where this comes from, in a sentence, if not from this supervisor."""


def diagnosis(
    worker: WorkerStatus,
    text: str,
    death: DeathRecord | None = None,
    *,
    left: tuple[int, ...] | None = None,
    everything_paused: bool = False,
    groups: tuple[GroupStatus, ...] = (),
) -> WorkerDiagnosis:
    """The fields of a worker whose sentences are `text`."""
    last = None if death is None else _last(death)
    return WorkerDiagnosis(
        id=worker.component_id,
        text=text,
        component_id=worker.component_id,
        status=worker.shown,
        health=worker.status,
        code=_code(worker),
        reason=worker.failure_reason or worker.why,
        pid=worker.pid,
        generation=worker.generation,
        paused=worker.paused,
        cause=None if last is None else last.cause,
        exit=None if last is None else last.exit,
        signal=None if last is None else last.signal,
        last_death=last,
        budget=worker.budget,
        next_attempt_in_s=worker.next_attempt_in_s,
        last_error=worker.last_error,
        left=list(left or ()),
        groups=list(groups),
        commands=commands_for(worker, has_died=last is not None, everything_paused=everything_paused),
    )


def commands_for(worker: WorkerStatus, *, has_died: bool, everything_paused: bool = False) -> list[str]:
    """What an operator can run about a worker in this state, the most useful first."""
    name = worker.component_id
    verbs = [f"rekindle history {name} --bundle last"] if has_died else []
    if worker.paused:
        return ["rekindle resume" if everything_paused else f"rekindle resume {name}", *verbs]
    match worker.shown:
        case ShownStatus.FAILED:
            return [f"rekindle restart {name}", *verbs]
        case ShownStatus.CRASHED if worker.next_attempt_in_s is not None:
            return [f"rekindle start {name}", f"rekindle pause {name}", *verbs]
        case ShownStatus.CRASHED | ShownStatus.STOPPED | ShownStatus.DONE:
            return [f"rekindle start {name}", *verbs]
        case _:
            return verbs


def _last(death: DeathRecord) -> LastDeath:
    return LastDeath(
        generation=death.generation,
        at_wall_ms=death.died_at_wall_ms,
        cause=death.cause,
        exit=death.exit_code,
        signal=death.signal,
        decision=death.reason,
    )


def _code(worker: WorkerStatus) -> str:
    if worker.why_code is not None:
        return worker.why_code
    match worker.shown:
        case ShownStatus.FAILED:
            return "given_up"
        case ShownStatus.CRASHED:
            return "backoff"
        case ShownStatus.STARTING:
            return "waits_for" if worker.waits_for else "starting"
        case ShownStatus.HEALTHY:
            return "running"
        case _:
            return worker.shown.value
