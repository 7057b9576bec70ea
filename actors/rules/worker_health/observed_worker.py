"""Workers under the HealthMonitor's observation."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping

import msgspec
from msgspec.structs import replace

from ...deaths.death import Cause, Death, Job
from ...deaths.evidence import Remains
from ...facts.health_status import ShownStatus
from ...facts.records import HealthMirrored
from ...messages import StatusChanged, StatusReport, WorkerStatus
from ...messages.internal.to_monitor import ExpectLimitKill, Register
from ...spec.policies.alive_policy import AlivePolicy
from ...spec.policies.health_policy import HealthPolicy
from . import progress, watchdog
from .health import deadline, healthy_for, pending
from .health_states import HealthChange, Healthy, Lost, Pending, Probed, State, Unhealthy
from .probe_answers import ProbeAnswer, ProbeAnswers
from .progress import Progress
from .readiness import FRAME
from .watchdog import NO_WATCHDOG, Watchdog

MIRROR_AGE_S = 25.0
"""After how long a heartbeat that changes nothing is persisted, so that people see that it came."""

MIRROR_TOGETHER_S = 20.0
"""After how long it is persisted together with those of others, to save commits."""


class ObservedWorker(msgspec.Struct):
    """What the HealthMonitor knows of one worker; `generation` is its current incarnation."""

    component_id: str
    generation: int
    policy: HealthPolicy
    reports_health: bool
    state: State
    since: float
    pid: int | None = None
    start_note: str = ""
    """How it was started, if it may be forked from a warm process."""
    job: Job | None = None
    heartbeat_wall_ms: int | None = None
    heard_at: float | None = None
    mirrored_at: float | None = None
    """When its health was last persisted for people to read."""
    progress: Progress = msgspec.field(default_factory=Progress)
    watchdog: Watchdog = NO_WATCHDOG
    said: str = ""
    """What it last said of itself over its notify socket."""
    alive: AlivePolicy | None = None
    breaker: str | None = None
    probes: ProbeAnswers = ProbeAnswers()
    paused: bool = False
    checked_at: float | None = None
    """The deadline of its check in the queue."""
    last_change: StatusChanged | None = None
    """The last change that was sent."""
    extensions: int = 0
    """How often its deadline was extended since its last frame because the supervisor was suspended."""
    was_ready: bool = False
    """Whether this incarnation was healthy at any time."""
    limit_exceeded: ExpectLimitKill | None = None
    """The limit for which the supervisor is ending it, if it is."""

    @property
    def awaits_launch(self) -> bool:
        """Whether the start of its process changes its health: it does unless only a frame is awaited."""
        return isinstance(self.state, Pending) and self.state.awaits != (FRAME,)

    @property
    def must_report(self) -> bool:
        """Whether silence counts: that of a program without a channel does during its start only."""
        return self.reports_health or isinstance(self.state, Pending)

    @property
    def silence_is_allowed(self) -> bool:
        """Whether it is paused. A start has its deadline all the same: other workers may wait for it."""
        return self.paused and not isinstance(self.state, Pending)

    @property
    def due(self) -> float | None:
        """When time alone changes its health next: because of silence, or of work without progress."""
        silent = deadline(self.state, self.policy) if self.must_report else None
        if not self._must_progress or (self.progress.moved is None and self.watchdog is NO_WATCHDOG):
            return silent
        dues = (silent, progress.deadline(self.progress, self.policy), watchdog.deadline(self.watchdog))
        return min((due for due in dues if due is not None), default=None)

    def stuck(self, now: float) -> Lost | None:
        """Why it must be ended although it runs and may even report, if it must."""
        if not self._must_progress:
            return None
        if (words := progress.stuck(self.progress, self.policy, now)) is not None:
            return Lost(Cause.NO_PROGRESS, detail=words)
        missed = watchdog.missed(self.watchdog, now)
        return None if missed is None else Lost(missed.cause, detail=missed.words)

    def probed(self, is_good: bool, words: str, now: float, breakers: Container[str | None]) -> Probed:
        """What an answer of its probe means; failures count unless it is paused or its breaker is open."""
        self.probes = self.probes.after(ProbeAnswer(now, is_good, words))
        counts = self.alive is not None and not self.paused and self.breaker not in breakers
        most = self.alive.failures if self.alive is not None and counts else None
        return Probed(is_good, f"{self.probes.question}: {words}", most)

    def grant(self, now: float) -> None:
        """The monitor was away or the worker paused: start the times of its work over."""
        self.progress = progress.granted(self.progress, now)
        self.watchdog = watchdog.granted(self.watchdog, now)

    def ready(self, now: float) -> None:
        """It has become healthy."""
        self.was_ready = True
        self.watchdog = watchdog.begun(self.watchdog, now)

    @property
    def _must_progress(self) -> bool:
        """Not while it starts or recovers, which have deadlines of their own."""
        return isinstance(self.state, (Healthy, Unhealthy))

    def is_mirror_old(self, now: float, most_s: float = MIRROR_AGE_S) -> bool:
        """Whether people read that it was last heard from longer ago than that, although it reports."""
        if self.heard_at is None or self.mirrored_at is None or self.heard_at <= self.mirrored_at:
            return False
        return now - self.mirrored_at >= most_s

    def death(self, change: HealthChange, now: float, remains: Remains | None) -> Death:
        """Its death by this change, before its state is replaced."""
        assert change.cause is not None
        return Death(
            component_id=self.component_id,
            generation=self.generation,
            cause=change.cause,
            exit=change.exit,
            detail=change.detail,
            healthy_for_ms=round(healthy_for(self.state, now) * 1000),
            was_ready=self.was_ready,
            uptime_ms=round((now - self.since) * 1000),
            job=self.job,
            pid=self.pid,
            silent_ms=None if self.heard_at is None else round((now - self.heard_at) * 1000),
            progress=self.progress.mark,
            probes=self.probes.said(now),
            remains=remains,
        )

    def mirrored(self) -> HealthMirrored:
        """Its health as a record for people to read."""
        return HealthMirrored(
            component_id=self.component_id,
            generation=self.generation,
            status=self.state.status.value,
            pid=self.pid,
            current_job=self.job,
            last_heartbeat_wall_ms=self.heartbeat_wall_ms,
        )


def observed(request: Register, now: float) -> ObservedWorker:
    """A new incarnation."""
    return ObservedWorker(
        request.component_id,
        request.generation,
        request.policy,
        request.reports_health,
        pending(now, request.ready, request.reports_health),
        now,
        watchdog=watchdog.watchdog_of(request.ready, request.stop_s),
        alive=request.alive,
        breaker=request.breaker,
        probes=ProbeAnswers("" if request.alive is None else str(request.alive)),
    )


def to_mirror(
    workers: Mapping[str, ObservedWorker], changed: Collection[str], heard: Collection[str], now: float
) -> tuple[HealthMirrored, ...]:
    """What people can read next: the workers that changed, and those heard whose heartbeat is old there."""
    chosen = [
        worker
        for id_ in sorted({*changed, *heard})
        if (worker := workers.get(id_)) is not None
        and (id_ in changed or worker.is_mirror_old(now, MIRROR_TOGETHER_S))
    ]
    for worker in chosen:
        worker.mirrored_at = now
    return tuple(worker.mirrored() for worker in chosen)


def with_heartbeats(report: StatusReport, workers: Mapping[str, ObservedWorker], now: float) -> StatusReport:
    """The report with the age of each worker's last heartbeat, and what a starting worker waits for."""
    return replace(
        report, workers=tuple(_aged(each, workers.get(each.component_id), now) for each in report.workers)
    )


def _aged(status: WorkerStatus, worker: ObservedWorker | None, now: float) -> WorkerStatus:
    if worker is None or status.pid is None or worker.generation != status.generation:
        return status
    if worker.start_note:
        status = replace(status, start_note=worker.start_note)
    if worker.probes:
        status = replace(status, probes=worker.probes.said(now))
    if worker.said:
        status = replace(status, said=worker.said)
    if isinstance(worker.state, Pending) and status.shown is ShownStatus.STARTING:
        status = replace(status, not_ready=tuple(map(str, worker.state.awaits)))
    return status if worker.heard_at is None else replace(status, heartbeat_age_s=now - worker.heard_at)
