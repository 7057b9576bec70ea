"""What a host may have done to the workers of a system."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable

from ..errors import RequestRefusedError
from ..facts.audit_entry import AuditEntry
from ..facts.jobs import SERVED_QUEUES
from ..facts.records import MetaSet
from ..messages import (
    AcknowledgeAlert,
    AddWorker,
    ChangeWorkers,
    Done,
    Event,
    PauseWorkers,
    Refused,
    RemoveWorker,
    ResetWorker,
    RestartWorker,
    ResumeWorkers,
    StartWorkers,
    StopResult,
    StopWorkers,
    WorkersChanged,
    WorkersStopped,
)
from ..messages.internal import Keep, QueuesTouched
from ..ports import Jobs
from ..runtime.resilient_actor import tell
from ..spec.job_payload import checked_queue, new_job, payload_text
from ..spec.spec_changes import Changes
from ..spec.stop_urgency import Urgency
from ..spec.worker_spec import WorkerSpec, served_by
from .assembly import served
from .inboxes import Inbox
from .requests import ANSWER_S, Answer, Asking, distinct
from .watched_jobs import ToldJobs


class Operating(Asking):
    """Orders and jobs."""

    def start_worker(self, component_id: str) -> bool:
        """Start one worker now, whatever delay it is in; its counters stay. False: it runs already.

        A failed one under `clear_failed_on_change` is started, with its counters cleared, if it is
        another version now.

        Raises:
            RequestRefusedError: it is failed, and stays so.
            PausedError: it is paused.
        """
        versions = self._fingerprints.versions(spec for spec in self._specs if spec.id == component_id)
        return _was_needed(self._ask(lambda reply: StartWorkers((component_id,), reply, versions)))

    def stop_worker(self, component_id: str, timeout_s: float | None = None) -> StopResult:
        """Stop one worker; it stays down until it is started, or the system is started anew."""
        patience = self._longest_stop() if timeout_s is None else timeout_s
        stopped = self._ask(lambda reply: StopWorkers((component_id,), reply), patience)
        assert isinstance(stopped, WorkersStopped)
        return stopped.results[0]

    def stop_workers(
        self, timeout_s: float | None = None, urgency: Urgency = Urgency.GRACEFUL
    ) -> tuple[StopResult, ...]:
        """Stop all workers; the system stays, and `start` starts them again."""
        patience = self._longest_stop() if timeout_s is None else timeout_s
        stopped = self._ask(lambda reply: StopWorkers(None, reply, urgency), patience)
        assert isinstance(stopped, WorkersStopped)
        return stopped.results

    def restart(self, component_id: str) -> None:
        """Clear a worker's counters and start it afresh, now.

        Raises:
            PausedError: it is paused; its counters stay.
        """
        self._ask(lambda reply: RestartWorker(component_id, reply))

    def reset(self, component_id: str) -> None:
        """Clear a worker's counters and failure; it is not started."""
        self._ask(lambda reply: ResetWorker(component_id, reply))

    def pause(self, *component_ids: str, reason: str = "", for_s: float | None = None) -> None:
        """Pause these workers, or the whole system; remembered across restarts.

        With `for_s` the pause ends by itself after so many seconds.
        """
        self._ask(lambda reply: PauseWorkers(component_ids or None, reply, reason, for_s))

    def resume(self, *component_ids: str) -> bool:
        """End a pause. False: there was none."""
        return _was_needed(self._ask(lambda reply: ResumeWorkers(component_ids or None, reply)))

    def add(self, spec: WorkerSpec) -> None:
        """Supervise one more worker."""
        versions = self._fingerprints.versions([spec])
        self._ask(lambda reply: AddWorker(spec, reply, versions))
        with self._knowing:
            self._know((*self._specs, spec))

    def remove(self, component_id: str, timeout_s: float | None = None) -> None:
        """Stop a worker and forget it."""
        patience = self._longest_stop() if timeout_s is None else timeout_s
        self._ask(lambda reply: RemoveWorker(component_id, reply), patience)
        with self._knowing:
            self._know(tuple(spec for spec in self._specs if spec.id != component_id))

    def change(self, specs: Iterable[WorkerSpec]) -> Changes:
        """Supervise exactly these workers from now on; what did not change is left alone."""
        wanted = distinct(specs)
        versions = self._fingerprints.versions(wanted)
        changed = self._ask(lambda reply: ChangeWorkers(wanted, reply, versions))
        assert isinstance(changed, WorkersChanged)
        with self._knowing:
            self._know(wanted)
        return changed.changes

    def _know(self, specs: tuple[WorkerSpec, ...]) -> None:
        before, self._specs = self._served(), specs
        if self._served() != before:
            tell(self._running().persistence, Keep(self._served()))
        tell(self._running().watch, served(specs))

    def _served(self) -> MetaSet:
        return MetaSet(SERVED_QUEUES, json.dumps(self.queues))

    @property
    def jobs(self) -> Jobs:
        """The queues: what is in them, and what an operator may do about it."""
        return ToldJobs(self._store.jobs, self._touched)

    def _touched(self, job_ids: tuple[int, ...]) -> None:
        if self._actors is not None:
            tell(self._actors.watch, QueuesTouched(job_ids))

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues that our workers serve."""
        return served_by(self._specs)

    def enqueue(
        self,
        queue: str,
        payload: object,
        *,
        priority: int = 0,
        delay_s: float = 0.0,
        max_retries: int | None = None,
    ) -> int:
        """Put a job into a queue; its number. It is durable when this returns.

        Other programs do the same with `rekindle.persistence.open_queue`, which explains the
        arguments.

        Raises:
            UnknownQueueError: none of our workers serves the queue.
            PayloadError: the payload is not JSON, or a number makes no sense.
            StoreUnavailableError: the database cannot be written to now.
        """
        checked_queue(queue, self.queues)
        now = time.time_ns() // 1_000_000
        job = new_job(payload_text(payload), now, priority=priority, delay_s=delay_s, max_retries=max_retries)
        return self.jobs.add(queue, [job])[0]

    def audit(self, entry: AuditEntry) -> None:
        """Have an operator's order kept."""
        tell(self._running().persistence, Keep(entry))

    def acknowledge(self, alert_id: int, by: str) -> None:
        """Take note of an alert in somebody's name; it stays until it is over.

        Raises:
            RequestRefusedError: there is no such alert.
        """
        inbox = Inbox()
        if not tell(self._running().alerts, AcknowledgeAlert(alert_id, by, inbox)):
            raise RequestRefusedError("this system keeps no alerts")
        answer: Done | Refused = inbox.get(ANSWER_S)
        if isinstance(answer, Refused):
            raise RequestRefusedError(answer.reason)

    def announce(self, event: Event) -> None:
        """Have an event of a host's own edge numbered, kept and told like any other."""
        tell(self._running().broker, event)


def _was_needed(answer: Answer) -> bool:
    return not (isinstance(answer, Done) and answer.already)
