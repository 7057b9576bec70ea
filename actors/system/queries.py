"""What a host may see of a system."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import pykka

from ..deaths.crash_bundle import Bundle
from ..errors import RequestRefusedError, RequestTimeoutError, StoreError, UnknownDeathError
from ..facts.alert import Alert
from ..facts.audit_entry import AuditEntry
from ..facts.commit_times import CommitTimes
from ..facts.health_status import Status
from ..facts.records import DeathRecord, EventPage
from ..facts.usage import Usage
from ..messages import AlertReport, ReportAlerts, ReportStatus, StatusReport, WorkerStatus
from ..messages.internal.to_broker import Subscribe, Unsubscribe
from ..messages.topics import problem
from ..ports import Receiver, Store
from ..processes.watch.transcript import OutputLines, lines_of
from ..runtime.resilient_actor import tell
from ..spec.worker_spec import WorkerSpec
from ..views.explanation import explain, stop_of
from ..views.timeline import Timeline
from .gateway_memory import Notes
from .inboxes import EventStream, Inbox, LatestInbox
from .requests import ANSWER_S, Asking
from .timeline_reader import FlightRecorder

GLANCE_S = 0.05
"""How often `wait_until` looks while nothing happens."""


class Looking(Asking):
    """Reports, the past, and what happens."""

    def __init__(self, specs: Iterable[WorkerSpec], store: Store) -> None:
        super().__init__(specs, store)
        self._flight_recorder = FlightRecorder(store)
        self._notes: Notes | None = None

    def report(self) -> StatusReport:
        """Every worker, and how the store is."""
        report = self._ask(ReportStatus)
        assert isinstance(report, StatusReport)
        return report

    def status(self, component_id: str) -> WorkerStatus:
        """One worker."""
        return self._among(self.report(), component_id)

    def check(self, component_id: str) -> None:
        """Make sure that there is such a worker.

        Raises:
            UnknownWorkerError: there is none.
        """
        self.status(component_id)

    def _among(self, report: StatusReport, component_id: str) -> WorkerStatus:
        for worker in report.workers:
            if worker.component_id == component_id:
                return worker
        raise self._unknown(component_id)

    def deaths(self, component_id: str | None = None, limit: int = 100) -> tuple[DeathRecord, ...]:
        """The latest deaths that were kept, newest first."""
        return self._store.deaths(component_id, limit=limit)

    def bundles(self, component_id: str, limit: int = 100) -> tuple[Bundle, ...]:
        """The evidence of a worker's latest deaths, newest first."""
        return self._store.bundles(component_id, limit=limit)

    def bundle(self, component_id: str, generation: int) -> Bundle:
        """The evidence of one death.

        Raises:
            UnknownDeathError: that generation did not die, or nothing is kept of it any more.
        """
        found = self._store.bundles(component_id, generation=generation)
        if not found:
            raise UnknownDeathError(component_id, generation)
        return found[0]

    def spec(self, component_id: str) -> WorkerSpec:
        """How a worker is declared."""
        for spec in self._specs:
            if spec.id == component_id:
                return spec
        raise self._unknown(component_id)

    def explain(self, component_id: str) -> str:
        """Why a worker is as it is, when it is tried again, and what can be done."""
        report = self.report()
        worker = self._among(report, component_id)
        deaths: tuple[DeathRecord, ...] = ()
        bundle = stop = None
        with suppress(StoreError):
            deaths = self.deaths(component_id, limit=1)
            if deaths:
                (bundle,) = self._store.bundles(component_id, generation=deaths[0].generation) or (None,)
            stop = stop_of(component_id, self.audited(), time.time_ns() // 1_000_000)
        return explain(worker, deaths, bundle=bundle, stop=stop, everything_paused=report.paused)

    def timeline(self, component_id: str, since_wall_ms: int = 0, limit: int = 100) -> Timeline:
        """What happened to a worker, newest first, and its mean time between failures.

        Raises:
            UnknownWorkerError: there is no such worker, and nothing is known of one.
        """
        now = {worker.component_id: worker for worker in self.report().workers}.get(component_id)
        running_s = None if now is None else now.uptime_s
        found = self._flight_recorder.timeline(
            component_id,
            since_wall_ms=since_wall_ms,
            limit=limit,
            running_ms=0 if running_s is None else round(running_s * 1000),
        )
        if now is None and not found.ever.deaths and not any(each.generation for each in found.entries):
            raise self._unknown(component_id)
        return found

    def audited(self, limit: int = 100) -> tuple[AuditEntry, ...]:
        """The latest orders of operators, newest first."""
        return self._store.audit(limit)

    def alerts(self) -> tuple[Alert, ...]:
        """The alerts that are not over, and the latest of those that are; the worst first."""
        inbox = Inbox()
        if not tell(self._running().alerts, ReportAlerts(inbox)):
            return ()
        report: AlertReport = inbox.get(ANSWER_S)
        return report.alerts

    def output(self, component_id: str) -> tuple[str, ...]:
        """The last lines that a worker wrote."""
        return () if self._processes is None else self._processes.output(component_id)

    def written(self, *ids: str, after: int | None = None, last: int = 10) -> OutputLines:
        """What these workers wrote, or all: after the line of that number, or the last lines of each."""
        processes = self._processes
        if processes is None:
            return OutputLines((), 0, 0, "")
        recent = processes.transcript.after(0 if after is None else after)
        if after is not None and not ids:
            return recent
        tails = {id_: processes.written(id_) for id_ in ids or [spec.id for spec in self._specs]}
        return lines_of(tails, recent, after, last)

    def usages(self) -> dict[str, Usage]:
        """What every worker that runs uses at this moment, with all that it started."""
        processes, found = self._processes, {}
        for worker in self.report().workers if processes is not None else ():
            usage = None if processes is None else processes.usage(worker.component_id, worker.generation)
            if usage is not None:
                found[worker.component_id] = usage
        return found

    def strays(self) -> tuple[tuple[int, str], ...]:
        """Processes that a worker started and that left its session, as (pid, component_id).

        They are not ended with their worker, and are killed with everything else if the
        supervisor is killed.
        """
        return () if self._processes is None else self._processes.strays()

    def reap_strangers(self) -> None:
        """Reap ended children of this process that are no workers of ours.

        For a process that is nothing but a supervisor, and adopts what its workers leave behind:
        in a host's it would take the status of the host's own children.
        """
        if self._processes is not None:
            self._processes.reap_orphans()

    def events(self, *topics: str) -> EventStream:
        """Everything that happens from now on; with topics their snapshot first, then what changes.

        Whoever does not read it loses the oldest, and nobody else notices.
        """
        inbox = LatestInbox()
        self.subscribe(inbox, *topics)
        return EventStream(inbox, lambda: self.unsubscribe(inbox))

    def event_log(self, after_id: int = 0, limit: int = 100, /) -> EventPage:
        """The events that are kept, after a number, oldest first."""
        return self._store.events(after_id, limit)

    def notes(self) -> Notes:
        """What gateways remember, by name."""
        self._running()
        assert self._notes is not None
        return self._notes

    def commit_times(self) -> CommitTimes:
        """How long commits took."""
        return self._running().commits

    def subscribe(self, receiver: Receiver, /, *topics: str) -> None:
        """Tell a receiver, such as a host's actor ref, every event from now on.

        With topics such as `worker:*:status` it is told a `Snapshot` first, then a `StateChanged`
        for every change; with those of the log, such as `event:*`, numbered events.

        Raises:
            RequestRefusedError: one of the topics can choose nothing.
        """
        wrong = [text for text in map(problem, topics) if text is not None]
        if wrong:
            raise RequestRefusedError(wrong[0])
        tell(self._running().broker, Subscribe(receiver, topics or None))

    def unsubscribe(self, receiver: Receiver, /) -> None:
        """Stop telling it."""
        if self._actors is not None:
            tell(self._actors.broker, Unsubscribe(receiver))

    def wait_for(self, component_id: str, *wanted: Status, timeout_s: float) -> WorkerStatus:
        """Wait until a worker has one of these statuses.

        Raises:
            RequestTimeoutError: it has not, in that time.
        """
        return self.wait_until(component_id, lambda worker: worker.status in wanted, timeout_s)

    def wait_until(
        self, component_id: str, condition: Callable[[WorkerStatus], bool], timeout_s: float
    ) -> WorkerStatus:
        """Wait until a condition holds for a worker.

        It is looked at whenever something happens, and now and then: uptime and job change
        without an event.

        Raises:
            RequestTimeoutError: it does not, in that time.
        """
        deadline = time.monotonic() + timeout_s
        with self.events() as events:
            while not condition(worker := self.status(component_id)):
                left = deadline - time.monotonic()
                if left <= 0:
                    message = f"{component_id} is {worker.shown} after {timeout_s:g} s: {worker.why}"
                    raise RequestTimeoutError(message)
                with suppress(RequestTimeoutError):
                    events.next(min(left, GLANCE_S))
        return worker

    @property
    def supervisor(self) -> pykka.ActorRef[Any]:
        """The ref that takes the commands of `rekindle.actors.messages` by `tell`."""
        return self._running().supervisor

    @property
    def mark(self) -> str:
        """What stands as REKINDLE_SYSTEM in the environment of every process of this system."""
        self._running()
        assert self._processes is not None
        return self._processes.mark
