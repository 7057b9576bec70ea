"""Upkeep of healthy workers: limits on resources, and recycling by age, jobs or memory.

Belongs to the Supervisor and runs in it. A worker that is due for a new process waits until
the others of its group can spare it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import pykka

from .. import supervision
from ..deaths.death import Job
from ..facts.health_status import Status
from ..messages.internal.to_desks import UnwatchUsage, WatchUsage
from ..messages.internal.to_supervisor import JobOverdue, LimitExceeded, RecycleDue
from ..ports import Processes, Receiver, Runtime, Timer
from ..resource_monitor import ResourceMonitor
from ..runtime.resilient_actor import tell
from ..spec.deployment.rollout_policy import RolloutPolicy
from ..spec.policies.resource_limits import RecyclePolicy, ResourceLimits
from ..spec.policies.stop_policy import Urgency
from ..supervision.handed_over_worker import CountedProcess
from ..supervision.worker import Failed, Idle, Rest, StopReason, SupervisedWorker, Up
from .breakers import Breakers
from .rollouts import Rollouts
from .workers import Workers

ENOUGH_JOBS = "it has done its number of jobs"


@dataclass(slots=True)
class _Incarnation:
    """What is counted of one process."""

    generation: int
    recycle: RecyclePolicy | None
    limits: ResourceLimits | None
    jobs_left: int | None = None
    job: Job | None = None
    timer: Timer | None = None
    recycle_at: float | None = None


class Upkeep:
    """Watches the running workers and recycles those that are due."""

    def __init__(
        self,
        runtime: Runtime,
        workers: Workers,
        *,
        breakers: Breakers,
        supervisor: Receiver,
        processes: Processes,
        persistence: Receiver,
    ) -> None:
        self._runtime = runtime
        self._breakers = breakers
        self._workers = workers
        self._supervisor = supervisor
        self._processes = processes
        self._persistence = persistence
        self._monitor: pykka.ActorRef[ResourceMonitor] | None = None
        self._running: dict[str, _Incarnation] = {}
        self._due: dict[str, RecycleDue] = {}
        self.rollouts: Rollouts | None = None
        """Where workers are recycled that have a policy for it; set by the Supervisor."""

    def known(self) -> dict[str, CountedProcess]:
        """What was counted, for the program that replaces this one."""
        return {
            id_: CountedProcess(
                generation=each.generation,
                jobs_left=each.jobs_left,
                job=each.job,
                recycle_at=each.recycle_at,
            )
            for id_, each in self._running.items()
        }

    def process_started(self, component_id: str, counted: CountedProcess | None = None) -> None:
        """A process started, or was taken over: count its jobs and age, and watch its use of resources."""
        worker = self._workers.get(component_id)
        if worker is None or not isinstance(worker.phase, Up):
            return
        spec, generation = worker.spec, worker.phase.generation
        if spec.limits is None and spec.recycle is None:
            return
        self._forget(component_id)
        incarnation = _Incarnation(generation, spec.recycle, spec.limits)
        self._running[component_id] = incarnation
        if spec.recycle is not None:
            self._count(component_id, incarnation, spec.recycle, counted)
        self._watch(component_id, incarnation)

    def process_gone(self, component_id: str, generation: int) -> None:
        """A process is gone: what was counted for it is void."""
        incarnation = self._running.get(component_id)
        if incarnation is not None and incarnation.generation == generation:
            self._forget(component_id)

    def job_changed(self, component_id: str, generation: int, job: Job | None) -> None:
        """A worker took or left a job; a job that it left counts as done."""
        incarnation = self._running.get(component_id)
        if incarnation is None or incarnation.generation != generation:
            return
        finished, incarnation.job = incarnation.job, job
        if finished is None or finished == job or incarnation.jobs_left is None:
            return
        incarnation.jobs_left -= 1
        if incarnation.jobs_left == 0:
            self.recycle(RecycleDue(component_id, generation, ENOUGH_JOBS))

    def limit_exceeded(self, exceeded: LimitExceeded) -> None:
        """A worker exceeded a limit: kill it; its restart policy decides what follows."""
        change = partial(supervision.limit_exceeded, generation=exceeded.generation, detail=exceeded.detail)
        self._workers.step(exceeded.component_id, change)

    def recycle(self, due: RecycleDue) -> None:
        """Give a worker a new process as soon as it can be spared."""
        self._due[due.component_id] = due
        self.recycle_due()

    def end_for_job(self, overdue: JobOverdue) -> None:
        """A job did not end when it was asked to: give its worker a new process, without counting it.

        The other jobs of the worker may finish first, as in any stop. A worker without others was asked
        already.
        """
        worker = self._workers.get(overdue.component_id)
        if worker is None or not _is_up(worker, overdue.generation):
            return
        has_others = worker.spec.jobs is not None and worker.spec.jobs.concurrency > 1
        urgency = Urgency.GRACEFUL if has_others else Urgency.FIRM
        self._workers.step(worker.id, partial(supervision.recycle, reason=overdue.reason, urgency=urgency))

    def recycle_due(self) -> None:
        """A worker's health or orders changed: recycle the due workers that can be spared now."""
        for id_, due in tuple(self._due.items()):
            worker = self._workers.get(id_)
            if worker is None or not _is_up(worker, due.generation):
                del self._due[id_]
            elif worker.spec.rollout is not None and self.rollouts is not None:
                self._roll_out(worker, worker.spec.rollout, due)
            elif self._can_spare(worker):
                del self._due[id_]
                self._workers.step(id_, partial(supervision.recycle, reason=due.reason))

    def _roll_out(self, worker: SupervisedWorker, policy: RolloutPolicy, due: RecycleDue) -> None:
        """Recycle a worker so that a new process takes over, one of its table at a time."""
        assert self.rollouts is not None
        name = worker.spec.group or worker.id
        is_well = worker.is_healthy and self._breakers.is_closed(worker)
        if is_well and not self.rollouts.is_busy(name):
            del self._due[worker.id]
            self.rollouts.begin(name, (worker.id,), policy, StopReason.RECYCLE, detail=due.reason)

    def specs_changed(self) -> None:
        """Specs may have changed: apply the new limits to running workers."""
        for worker in self._workers:
            if isinstance(worker.phase, Up) and worker.phase.pid is not None:
                counted = self._running.get(worker.id)
                held_to = (None, None) if counted is None else (counted.limits, counted.recycle)
                if held_to != (worker.spec.limits, worker.spec.recycle):
                    self._forget(worker.id)
                    self.process_started(worker.id)

    def _can_spare(self, worker: SupervisedWorker) -> bool:
        if worker.status is not Status.HEALTHY or not self._breakers.is_closed(worker):
            return False
        others = [each for each in self._workers if _stands_in(each, worker)]
        least = None if worker.spec.recycle is None else worker.spec.recycle.min_healthy
        healthy = sum(each.is_healthy for each in others)
        return healthy >= (len(others) if least is None else least)

    def _count(
        self,
        component_id: str,
        incarnation: _Incarnation,
        policy: RecyclePolicy,
        counted: CountedProcess | None,
    ) -> None:
        kept, now = 1 - policy.jitter * self._runtime.chance(), self._runtime.clock.monotonic()
        if policy.after_jobs is not None:
            incarnation.jobs_left = max(1, round(policy.after_jobs * kept))
        if counted is not None and counted.generation == incarnation.generation:
            incarnation.jobs_left, incarnation.job = counted.jobs_left, counted.job
            incarnation.recycle_at = counted.recycle_at
            if counted.jobs_left == 0:  # the former program waited until it could be spared
                tell(self._supervisor, RecycleDue(component_id, incarnation.generation, ENOUGH_JOBS))
        if policy.after_s is not None:
            age = policy.after_s * kept
            due = RecycleDue(component_id, incarnation.generation, f"it has run for {age:.0f} s")
            incarnation.recycle_at = incarnation.recycle_at or now + age
            left = max(0.0, incarnation.recycle_at - now)
            incarnation.timer = self._runtime.timers.after(left, self._supervisor, due)

    def _watch(self, component_id: str, incarnation: _Incarnation) -> None:
        recycle, limits = incarnation.recycle, incarnation.limits
        most = None if recycle is None else recycle.above_memory_mb
        if (limits is None or not limits.any) and most is None:
            return
        if limits is None:
            assert recycle is not None
            limits = ResourceLimits(interval_s=recycle.interval_s)
        if self._monitor is None:
            self._monitor = self._runtime.start(
                ResourceMonitor,
                runtime=self._runtime,
                processes=self._processes,
                supervisor=self._supervisor,
                persistence=self._persistence,
            )
        tell(self._monitor, WatchUsage(component_id, incarnation.generation, limits, most))

    def _forget(self, component_id: str) -> None:
        incarnation = self._running.pop(component_id, None)
        if incarnation is None:
            return
        if incarnation.timer is not None:
            incarnation.timer.cancel()
        tell(self._monitor, UnwatchUsage(component_id, incarnation.generation))


def _is_up(worker: SupervisedWorker, generation: int) -> bool:
    return isinstance(worker.phase, Up) and worker.phase.generation == generation


def _stands_in(other: SupervisedWorker, worker: SupervisedWorker) -> bool:
    """Whether the other worker belongs to the same group and should be running."""
    if other.id == worker.id or not worker.spec.group or other.spec.group != worker.spec.group:
        return False
    if isinstance(other.phase, Idle):
        return other.phase.rest is Rest.HELD
    return not isinstance(other.phase, Failed)
