"""The read side of a running system."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from ..deaths.crash_bundle import Bundle
from ..errors import RequestRefusedError, RequestTimeoutError, StoreError
from ..facts.alert import Alert
from ..facts.records import DeathRecord
from ..facts.usage import Usage
from ..messages import AlertReport, ReportAlerts, ReportStatus, StatusReport, WorkerStatus
from ..messages.internal.to_broker import Subscribe, Unsubscribe
from ..messages.topics import problem
from ..ports import Receiver
from ..processes.watch.transcript import OutputLines, lines_of
from ..runtime.resilient_actor import tell
from ..views.explanation import explain, stop_of
from ..views.timeline import Timeline
from .declared_workers import DeclaredWorkers
from .inboxes import EventStream, LatestInbox
from .requests import Requests
from .stored_history import History, mentions_worker

POLL_S = 0.05
"""How often `wait_until` looks while no event arrives."""


class Queries:
    """Reports, explanations, output, use of resources, and events as they happen."""

    def __init__(self, requests: Requests, workers: DeclaredWorkers, history: History) -> None:
        self._requests = requests
        self._workers = workers
        self._history = history

    def report(self) -> StatusReport:
        """Every worker and the state of the store."""
        report = self._requests.supervisor(ReportStatus)
        assert isinstance(report, StatusReport)
        return report

    def status(self, component_id: str) -> WorkerStatus:
        """One worker."""
        return self._one_of(self.report(), component_id)

    def _one_of(self, report: StatusReport, component_id: str) -> WorkerStatus:
        for worker in report.workers:
            if worker.component_id == component_id:
                return worker
        raise self._workers.unknown(component_id)

    def explain(self, component_id: str) -> str:
        """The state of a worker in sentences; without the past while the store cannot be read."""
        report = self.report()
        worker = self._one_of(report, component_id)
        deaths: tuple[DeathRecord, ...] = ()
        bundle: Bundle | None = None
        stop = None
        with suppress(StoreError):
            deaths = self._history.deaths(component_id, limit=1)
            if deaths:
                bundle = self._history.evidence(component_id, deaths[0].generation)
            stop = stop_of(component_id, self._history.audited(), time.time_ns() // 1_000_000)
        return explain(worker, deaths, bundle=bundle, stop=stop, everything_paused=report.paused)

    def timeline(self, component_id: str, since_wall_ms: int, limit: int) -> Timeline:
        """What happened to a worker that is supervised now or has left something in the store."""
        now = next((each for each in self.report().workers if each.component_id == component_id), None)
        uptime_s = None if now is None else now.uptime_s
        found = self._history.timeline(component_id, since_wall_ms, limit, uptime_s=uptime_s)
        if now is None and not mentions_worker(found):
            raise self._workers.unknown(component_id)
        return found

    def alerts(self) -> tuple[Alert, ...]:
        """Open alerts, and the latest closed ones."""
        report: AlertReport | None = self._requests.alert_desk(ReportAlerts)
        return () if report is None else report.alerts

    # ── processes ────────────────────────────────────────────────────────────────────────

    def output(self, component_id: str) -> tuple[str, ...]:
        """The last lines that a worker wrote."""
        parts = self._requests.parts
        return () if parts is None else parts.processes.output(component_id)

    def written(self, *ids: str, after: int | None, last: int) -> OutputLines:
        """Output of these workers or of all."""
        parts = self._requests.parts
        if parts is None:
            return OutputLines((), 0, 0, "")
        recent = parts.processes.transcript.after(0 if after is None else after)
        if after is not None and not ids:
            return recent
        chosen = ids or [spec.id for spec in self._workers.specs]
        return lines_of({id_: parts.processes.written(id_) for id_ in chosen}, recent, after, last)

    def usages(self) -> dict[str, Usage]:
        """What every running worker uses at this moment."""
        parts = self._requests.parts
        if parts is None:
            return {}
        generations = {worker.component_id: worker.generation for worker in self.report().workers}
        found = {id_: parts.processes.usage(id_, number) for id_, number in generations.items()}
        return {id_: usage for id_, usage in found.items() if usage is not None}

    def strays(self) -> tuple[tuple[int, str], ...]:
        """Processes that left the session of their worker."""
        parts = self._requests.parts
        return () if parts is None else parts.processes.strays()

    # ── events ───────────────────────────────────────────────────────────────────────────

    def events(self, *topics: str) -> EventStream:
        """A stream of everything that happens from now on."""
        inbox = LatestInbox()
        self.subscribe(inbox, *topics)
        return EventStream(inbox, lambda: self.unsubscribe(inbox))

    def subscribe(self, receiver: Receiver, *topics: str) -> None:
        """Send events to a receiver, or the states and events of these topics."""
        wrong = next((text for text in map(problem, topics) if text is not None), None)
        if wrong is not None:
            raise RequestRefusedError(wrong)
        tell(self._requests.actors.broker, Subscribe(receiver, topics or None))

    def unsubscribe(self, receiver: Receiver) -> None:
        """Stop sending to a receiver."""
        if self._requests.parts is not None:
            tell(self._requests.parts.actors.broker, Unsubscribe(receiver))

    def wait_until(
        self, component_id: str, condition: Callable[[WorkerStatus], bool], timeout_s: float
    ) -> WorkerStatus:
        """Wait until a condition holds for a worker."""
        deadline = time.monotonic() + timeout_s
        with self.events() as events:
            while not condition(worker := self.status(component_id)):
                left = deadline - time.monotonic()
                if left <= 0:
                    message = f"{component_id} is {worker.shown} after {timeout_s:g} s: {worker.why}"
                    raise RequestTimeoutError(message)
                with suppress(RequestTimeoutError):
                    events.next(min(left, POLL_S))
        return worker
