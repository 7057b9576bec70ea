"""The write side of a running system: orders about workers, jobs and alerts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Unpack

from ..deaths.death import signal_name, signal_number
from ..errors import RequestRefusedError
from ..facts.audit_entry import AuditEntry
from ..facts.queues import BatchAdded, QueueLimits
from ..facts.records import RememberedWorker
from ..messages import (
    AcknowledgeAlert,
    AddWorker,
    ChangeWorkers,
    Done,
    Event,
    PauseWorkers,
    QueueEvent,
    Refused,
    RemoveWorker,
    ResetWorker,
    RestartWorker,
    ResumeWorkers,
    RollOut,
    RunNow,
    StartWorkers,
    StopResult,
    StopWorkers,
    WorkersChanged,
    WorkerSignalled,
    WorkersStopped,
    WorkerStatus,
)
from ..messages.argument_checks import wrong_entry, wrong_event
from ..messages.internal.to_desks import DeclarePeriodic, QueuesTouched
from ..messages.internal.to_persistence import Persist
from ..messages.internal.to_supervisor import WorkersDeclared
from ..ports import Store
from ..processes.fingerprints import Fingerprints
from ..runtime.resilient_actor import tell
from ..spec.group_order import joined
from ..spec.job_payload import JobSettings, checked_queue, new_jobs
from ..spec.policies.group import Group
from ..spec.policies.queues.periodic import Periodic
from ..spec.policies.stop_policy import Urgency
from ..spec.spec_changes import Changes
from ..spec.worker_spec import WorkerSpec
from .assembly import queues_to_watch
from .declared_workers import DeclaredWorkers, checked, distinct
from .queues.current_trace import with_trace
from .queues.new_batch import add_batch
from .queues.watched_jobs import WatchedJobs
from .requests import REPLY_TIMEOUT_S, Reply, Requests


class Controls:
    """Carries out what a host or an operator orders; `System` documents each method."""

    def __init__(
        self, requests: Requests, workers: DeclaredWorkers, store: Store, fingerprints: Fingerprints
    ) -> None:
        self._requests = requests
        self._workers = workers
        self._store = store
        self._fingerprints = fingerprints
        self._holders: tuple[WorkerSpec, ...] = ()
        """Whose sockets stay open, whichever workers there are."""
        self.served: Callable[[], tuple[str, ...]] = lambda: workers.queues
        """The queues that workers serve; on the node of a cluster, also those of other nodes. May wait."""

    def start_all(self) -> None:
        """Start every worker that is not failed or paused."""
        versions = self._fingerprints.versions(self._workers.specs)
        self._requests.supervisor(lambda inbox: StartWorkers(None, inbox, versions))

    def start(self, component_id: str) -> bool:
        """Start one worker; False if it is running already."""
        specs = (spec for spec in self._workers.specs if spec.id == component_id)
        versions = self._fingerprints.versions(specs)
        return _changed_something(
            self._requests.supervisor(lambda inbox: StartWorkers((component_id,), inbox, versions))
        )

    def stop(
        self, ids: tuple[str, ...] | None, timeout_s: float | None, urgency: Urgency = Urgency.GRACEFUL
    ) -> tuple[StopResult, ...]:
        """Stop these workers, or all."""
        stopped = self._requests.supervisor(
            lambda inbox: StopWorkers(ids, inbox, urgency), self._stop_timeout_s(timeout_s)
        )
        assert isinstance(stopped, WorkersStopped)
        return stopped.results

    def _stop_timeout_s(self, timeout_s: float | None) -> float:
        return self._workers.longest_stop_s + REPLY_TIMEOUT_S if timeout_s is None else timeout_s

    def restart(self, component_id: str) -> None:
        """Clear a worker's counters and start it afresh."""
        self._requests.supervisor(lambda inbox: RestartWorker(component_id, inbox))

    def reset(self, component_id: str) -> None:
        """Clear a worker's counters and failure."""
        self._requests.supervisor(lambda inbox: ResetWorker(component_id, inbox))

    def roll_out(self, name: str, surge: int | None, roll_back: bool) -> None:
        """Give the workers of a table new processes, each of which is ready before an old one stops."""
        self._requests.supervisor(lambda inbox: RollOut(name, inbox, surge, roll_back))

    def run_now(self, component_id: str) -> None:
        """Begin a run of a scheduled worker now."""
        self._requests.supervisor(lambda inbox: RunNow(component_id, inbox))

    def signal(self, worker: WorkerStatus, signal: int | str) -> None:
        """Send the process of a worker a signal."""
        number = signal_number(signal)
        if number is None:
            raise RequestRefusedError(f"{signal!r} is not a signal")
        id_, generation = worker.component_id, worker.generation
        if worker.pid is None:
            raise RequestRefusedError(f"{id_} has no process to signal: it is {worker.shown}")
        self._requests.running.processes.signal(id_, generation, number)
        tell(self._requests.actors.persistence, WorkerSignalled(id_, generation, signal_name(number)))

    def pause(self, ids: tuple[str, ...] | None, reason: str, for_s: float | None) -> None:
        """Pause these workers, or the whole system."""
        self._requests.supervisor(lambda inbox: PauseWorkers(ids, inbox, reason, for_s))

    def resume(self, ids: tuple[str, ...] | None) -> bool:
        """End a pause; False if there was none."""
        return _changed_something(self._requests.supervisor(lambda inbox: ResumeWorkers(ids, inbox)))

    # ── which workers there are ──────────────────────────────────────────────────────────

    def add(self, spec: WorkerSpec, known: RememberedWorker | None = None) -> None:
        """Supervise one more worker."""
        spec = joined(checked(spec), self._workers.specs)
        versions = self._fingerprints.versions([spec])
        with self._opened_sockets((*self._workers.specs, spec), self._holders):
            self._requests.supervisor(lambda inbox: AddWorker(spec, inbox, versions, known))

    def remove(self, component_id: str, timeout_s: float | None) -> None:
        """Stop a worker and forget it."""
        self._requests.supervisor(
            lambda inbox: RemoveWorker(component_id, inbox), self._stop_timeout_s(timeout_s)
        )

    def change(
        self, specs: Iterable[WorkerSpec], groups: Iterable[Group] = (), holders: tuple[WorkerSpec, ...] = ()
    ) -> Changes:
        """Supervise exactly these workers from now on.

        Args:
            holders: specs, also of workers that do not exist, whose sockets stay open.
        """
        wanted = distinct(specs, groups)
        versions = self._fingerprints.versions(wanted)
        with self._opened_sockets(wanted, holders):
            changed = self._requests.supervisor(lambda inbox: ChangeWorkers(wanted, inbox, versions))
        assert isinstance(changed, WorkersChanged)
        return changed.changes

    def hold_sockets(self, holders: tuple[WorkerSpec, ...]) -> None:
        """Open the sockets of these specs too, and keep them open although no worker may have them."""
        with self._opened_sockets((), holders):
            pass

    @contextmanager
    def _opened_sockets(self, specs: Iterable[WorkerSpec], holders: tuple[WorkerSpec, ...]) -> Iterator[None]:
        """Open the sockets of new workers first, and close them again if the change is refused."""
        sockets = self._requests.running.processes.sockets
        sockets.open((*specs, *holders))
        before, self._holders = self._holders, holders
        try:
            yield
        except RequestRefusedError:
            self._holders = before
            sockets.keep((*self._workers.specs, *before))
            raise

    def tell(self, message: WorkersDeclared) -> None:
        """Take over which workers the Supervisor supervises now, however it was told to."""
        before = self._workers.queues
        self._workers.specs = message.specs
        if self._requests.parts is None:
            return
        self._requests.parts.processes.sockets.keep((*message.specs, *message.to_come, *self._holders))
        actors = self._requests.parts.actors
        if self._workers.queues != before:
            tell(actors.persistence, Persist((self._workers.queues_record,)))
        tell(actors.watch, queues_to_watch(message.specs))

    # ── jobs, alerts, events ─────────────────────────────────────────────────────────────

    @property
    def jobs(self) -> WatchedJobs:
        """The queues; the QueueWatch is notified of what is done to them."""
        return WatchedJobs(self._store.jobs, self._notify_queue_watch, self._announce)

    def _notify_queue_watch(self, job_ids: tuple[int, ...]) -> None:
        if self._requests.parts is not None:
            tell(self._requests.parts.actors.watch, QueuesTouched(job_ids))

    def change_queues(self, jobs: tuple[Periodic, ...], limits: tuple[QueueLimits, ...]) -> None:
        """Enqueue exactly these jobs by the clock from now on, and have exactly these limits."""
        tell(self._requests.actors.periodic, DeclarePeriodic(jobs, limits))

    def _announce(self, event: QueueEvent) -> None:
        if self._requests.parts is not None:
            tell(self._requests.parts.actors.persistence, event)

    def pause_queue(self, queue: str, reason: str, for_s: float | None) -> None:
        """Start no further job of a queue."""
        self.jobs.pause(checked_queue(queue, self.served()), reason=reason, for_s=for_s)

    def enqueue_many(
        self, queue: str, payloads: Iterable[object], **settings: Unpack[JobSettings]
    ) -> tuple[int, ...]:
        """Put a job for each payload into a queue, all or none; their ids."""
        checked_queue(queue, self.served())
        return self.jobs.add(queue, new_jobs(payloads, time.time_ns() // 1_000_000, **with_trace(settings)))

    def batch(
        self,
        queue: str,
        payloads: Iterable[object],
        then: object,
        then_queue: str | None,
        **settings: Unpack[JobSettings],
    ) -> BatchAdded:
        """Put jobs into a queue as a batch, and one that is run when all of them have ended."""
        return add_batch(self.jobs, self.served(), queue, payloads, then, then_queue, **settings)

    def audit(self, entry: AuditEntry) -> None:
        """Have an operator's order persisted."""
        if (wrong := wrong_entry(entry)) is not None:
            raise TypeError(wrong)
        tell(self._requests.actors.persistence, Persist((entry,)))

    def acknowledge(self, alert_id: int, by: str) -> None:
        """Mark an alert as seen by a person."""
        reply: Done | Refused | None = self._requests.alert_desk(
            lambda inbox: AcknowledgeAlert(alert_id, by, inbox)
        )
        if reply is None:
            raise RequestRefusedError("this system keeps no alerts")
        if isinstance(reply, Refused):
            raise RequestRefusedError(reply.reason)

    def announce(self, event: Event) -> None:
        """Publish an event of the host's own gateway."""
        if (wrong := wrong_event(event)) is not None:
            raise TypeError(wrong)
        tell(self._requests.actors.persistence, event)


def _changed_something(reply: Reply) -> bool:
    return not (isinstance(reply, Done) and reply.already)
