"""Pure: a worker as a supervisor hands it over when it is upgraded, and as the new one takes it over.

The spec is not part of it: the new program reads the file itself. Times are those of the monotonic clock,
which continues across an exec.
"""

from __future__ import annotations

import msgspec

from ..deaths.death import Job
from ..facts.health_status import Status
from ..rules.circuit_breaker import State as BreakerState
from ..rules.restarts import RestartState
from ..rules.schedules.timetable import Timetable
from ..spec.policies.stop_policy import Urgency
from ..spec.policies.work_item_policy import Release, ReleaseOrder
from ..spec.worker_spec import WorkerSpec
from .worker import OpenDeath, Phase, Stopping, StopReason, SupervisedWorker, Up


class HandedOverWorker(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What only the Supervisor knows of one worker."""

    phase: Phase
    generation: int
    lingering: int | None = None
    restarts: RestartState = RestartState()
    status: Status | None = None
    job: Job | None = None
    serves: bool = False
    """Whether its latest process was given queues."""
    not_before_ms: int | None = None
    unreleased: Release | None = None
    open_death: OpenDeath | None = None
    timetable: Timetable | None = None
    begun_after: int | None = None


class WaitingStop(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A stop that is decided and waits for other workers to end."""

    component_id: str
    kind: str
    """`stop`, `fall` or `pause`."""
    in_order: bool = True
    urgency: Urgency = Urgency.GRACEFUL
    reason: StopReason = StopReason.OPERATOR
    culprit: str = ""
    down: str | None = None


class CountedProcess(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the upkeep of a process has counted."""

    generation: int
    jobs_left: int | None = None
    job: Job | None = None
    recycle_at: float | None = None


class HandedOverFleet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What only the Supervisor knows."""

    workers: dict[str, HandedOverWorker]
    proxies: int = 0
    """How many proxies report as well."""
    started: bool = True
    stopping: bool = False
    """All workers are being stopped, because the supervisor ends."""
    versions: dict[str, str] = {}
    sustained_at: dict[str, tuple[int, float]] = {}
    """By worker: the generation, and when its health will have lasted long enough."""
    starting: tuple[tuple[str, int], ...] = ()
    """The starts, as (component_id, generation), that have a place among those at the same time."""
    stops: tuple[WaitingStop, ...] = ()
    unkillable: tuple[str, ...] = ()
    breakers: dict[str, BreakerState] = {}
    counted: dict[str, CountedProcess] = {}

    def holding(self) -> dict[str, int]:
        """The processes that hold their work items, by worker; what others held is being released."""
        held = {
            id_: each.phase.generation
            for id_, each in self.workers.items()
            if isinstance(each.phase, Up | Stopping)
        }
        late = {
            id_: each.unreleased.generation
            for id_, each in self.workers.items()
            if each.unreleased is not None
        }
        return held | late


def known_worker(worker: SupervisedWorker) -> HandedOverWorker:
    """What to hand over of a worker."""
    return HandedOverWorker(
        phase=worker.phase,
        generation=worker.generation,
        lingering=worker.lingering,
        restarts=worker.restarts,
        status=worker.status,
        job=worker.job,
        serves=worker.jobs is not None,
        not_before_ms=worker.not_before_ms,
        unreleased=None if worker.unreleased is None else worker.unreleased.release,
        open_death=worker.open_death,
        timetable=worker.timetable,
        begun_after=worker.begun_after,
    )


def taken_over(spec: WorkerSpec, known: HandedOverWorker) -> SupervisedWorker:
    """The worker as the former program left it."""
    return SupervisedWorker(
        spec,
        phase=known.phase,
        generation=known.generation,
        lingering=known.lingering,
        restarts=known.restarts,
        status=known.status,
        job=known.job,
        jobs=spec.jobs if known.serves else None,
        not_before_ms=known.not_before_ms,
        unreleased=None if known.unreleased is None else _order(spec, known.unreleased),
        open_death=known.open_death,
        timetable=known.timetable,
        begun_after=known.begun_after,
    )


def _order(spec: WorkerSpec, release: Release) -> ReleaseOrder | None:
    if spec.release is None:
        return None
    return ReleaseOrder(release, spec.release, spec.release.cwd or spec.cwd, spec)
