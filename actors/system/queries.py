"""The read side of a running system."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress

from ..deaths.crash_bundle import Bundle
from ..errors import RequestRefusedError, RequestTimeoutError, StoreError
from ..facts.alert import Alert
from ..facts.health_status import Status
from ..facts.records import DeathRecord
from ..facts.usage import Usage
from ..messages import (
    AlertReport,
    ReportAlerts,
    ReportStatus,
    StatusReport,
    WorkerStatus,
)
from ..messages.internal.to_broker import Subscribe, Unsubscribe
from ..messages.topics import problem
from ..ports import Receiver
from ..processes.spawn.spawner import environment_of
from ..processes.watch.output_tail import MOST_LINES as TAIL_LINES
from ..processes.watch.transcript import OutputLine, OutputLines, lines_of
from ..runtime.resilient_actor import tell
from ..views.bug_report import cleaner, secrets_of
from ..views.explanation import explain, stop_of
from ..views.health_summary import health_summary
from ..views.timeline import Timeline
from .declared_workers import DeclaredWorkers
from .inboxes import EventStream, LatestInbox
from .requests import REPLY_TIMEOUT_S, Requests
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
        """Every worker, in the order of the specs, and the state of the store."""
        report = self._requests.supervisor(ReportStatus)
        assert isinstance(report, StatusReport)
        return report

    def status(self, component_id: str) -> WorkerStatus:
        """One worker."""
        return self._one_of(self.report(), component_id)

    def is_healthy(self, component_id: str, max_age_s: float | None) -> bool:
        """Whether a worker runs and is well."""
        report = self.report()
        is_up = self._one_of(report, component_id).status is Status.HEALTHY
        return is_up and health_summary(report, (component_id,), max_age_s).healthy

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
        text = explain(worker, deaths, bundle=bundle, stop=stop, everything_paused=report.paused)
        return cleaner(self.secrets(component_id))(text)

    def secrets(self, component_id: str) -> frozenset[str]:
        """What must not be shown of a worker: secrets of its environment, the database's password."""
        environment = environment_of(self._workers.get(component_id), os.environ)
        return secrets_of(environment, self._history.address)

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
        """The last lines that a worker wrote, also before its latest restart."""
        return tuple(line.text for line in self.written(component_id, after=None, last=TAIL_LINES).lines)

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

    def follow_output(self, follower: Callable[[OutputLine], None]) -> None:
        """Have this called with every line that a worker writes; it must not block."""
        self._requests.running.processes.transcript.follower = follower

    def usages(self) -> dict[str, Usage]:
        """What every running worker uses at this moment."""
        parts = self._requests.parts
        if parts is None:
            return {}
        generations = {worker.component_id: worker.generation for worker in self.report().workers}
        found = {id_: parts.processes.usage(id_, number) for id_, number in generations.items()}
        return {id_: usage for id_, usage in found.items() if usage is not None}

    def check_answers(self) -> None:
        """Ask the actors and the thread that watches the processes."""
        self.report()
        waited_s = REPLY_TIMEOUT_S
        if not self._requests.running.processes.watches(waited_s):
            self.report()  # the Supervisor looks at the watcher and publishes the stall
            raise RequestTimeoutError(
                f"the thread that watches the processes did not answer within {waited_s:g} s"
            )

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
        if not callable(getattr(receiver, "tell", None)):
            raise TypeError(
                f"a receiver must have a method `tell`, such as the ref of an actor, not {receiver!r}"
            )
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
