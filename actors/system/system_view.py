"""What a host can read of a running system: its present, its past, and its events as they happen.

The methods wait for the actors' replies, with a timeout, and may be called from any thread.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from msgspec import convert
from msgspec.structs import replace

from ..deaths.crash_bundle import Bundle
from ..errors import RequestRefusedError, RequestTimeoutError, StoreError
from ..facts.alert import Alert
from ..facts.audit_entry import AuditEntry
from ..facts.commit_times import CommitTimes
from ..facts.health_status import Status
from ..facts.jobs import JobView
from ..facts.records import DeathRecord, EventPage
from ..facts.runs import Run
from ..facts.usage import Usage
from ..messages import (
    AlertReport,
    NodeStatus,
    ReportAlerts,
    ReportStatus,
    StatusReport,
    WorkerStatus,
)
from ..messages.internal.to_broker import Subscribe, Unsubscribe
from ..messages.topics import problem
from ..ports import Receiver
from ..processes.spawn.worker_command import environment_of
from ..processes.watch.output_tail import MOST_LINES as TAIL_LINES
from ..processes.watch.transcript import OutputLine, OutputLines, lines_of
from ..runtime.resilient_actor import tell
from ..spec.program import Command
from ..spec.worker_spec import WorkerSpec
from ..views.bug_report import cleaner, secrets_of
from ..views.diagnosis import WorkerDiagnosis, diagnosis
from ..views.explanation import explain, stop_of
from ..views.health_summary import health_summary
from ..views.log_page import LogLine, LogPage, LogQuery, page_of
from ..views.setting_origin import Configuration
from ..views.timeline import Timeline
from ..views.worker_history import WorkerHistory
from .declared_workers import DeclaredWorkers
from .inboxes import EventStream, LatestInbox
from .remembered_texts import RememberedTexts
from .requests import REPLY_TIMEOUT_S, Requests
from .stored_history import StoredHistory, mentions_worker

POLL_S = 0.05
"""How often `wait_until` looks while no event arrives."""


class SystemView:
    """What can be asked of a system; no method of it changes a worker."""

    def __init__(self, requests: Requests, workers: DeclaredWorkers, history: StoredHistory) -> None:
        self._requests = requests
        self._workers = workers
        self._history = history

    # ── the present ──────────────────────────────────────────────────────────────────────

    def report(self) -> StatusReport:
        """Every worker and the state of the store."""
        report = self._requests.supervisor(ReportStatus)
        assert isinstance(report, StatusReport)
        return report

    def status(self, component_id: str) -> WorkerStatus:
        """One worker."""
        return self._one_of(self.report(), component_id)

    def check_answers(self) -> None:
        """Raise `RequestTimeoutError` if the actors or the watcher of the processes do not answer.

        A watcher that does not answer is also published as `SupervisionStalled`, once until it answers.
        """
        self.report()
        waited_s = REPLY_TIMEOUT_S
        if not self._requests.running.processes.watches(waited_s):
            self.report()  # the Supervisor looks at the watcher and publishes the stall
            raise RequestTimeoutError(
                f"the thread that watches the processes did not answer within {waited_s:g} s"
            )

    def is_healthy(self, component_id: str, max_age_s: float | None = None) -> bool:
        """Whether a worker is healthy, and its last heartbeat, if it sends any, is recent enough."""
        report = self.report()
        is_up = self._one_of(report, component_id).status is Status.HEALTHY
        return is_up and health_summary(report, (component_id,), max_age_s).healthy

    def _one_of(self, report: StatusReport, component_id: str) -> WorkerStatus:
        for worker in report.workers:
            if worker.component_id == component_id:
                return worker
        raise self._workers.unknown(component_id)

    def check(self, component_id: str) -> None:
        """Raise `UnknownWorkerError` if there is no such worker."""
        self.status(component_id)

    def spec(self, component_id: str) -> WorkerSpec:
        """How a worker is declared."""
        return self._workers.get(component_id)

    def secrets(self, component_id: str) -> frozenset[str]:
        """What must not be shown of a worker: secrets of its environment, the database's password."""
        environment = environment_of(self._workers.get(component_id), os.environ)
        return secrets_of(environment, self._history.address)

    def explain(self, component_id: str) -> str:
        """Why a worker is in its state, when it is tried again, and what you can do."""
        return self.diagnose(component_id).text

    def diagnose(self, component_id: str) -> WorkerDiagnosis:
        """The same as `explain`, with fields for programs; without the past while the store is unreadable."""
        report = self.report()
        worker = self._one_of(report, component_id)
        deaths: tuple[DeathRecord, ...] = ()
        bundle: Bundle | None = None
        stop = None
        jobs: tuple[JobView, ...] = ()
        with suppress(StoreError):
            deaths = self._history.deaths(component_id, limit=1)
            if deaths:
                bundle = self._history.evidence(component_id, deaths[0].generation)
            stop = stop_of(component_id, self._history.audited(), time.time_ns() // 1_000_000)
            if worker.current_job is not None:
                jobs = self._history.jobs_of(component_id, worker.generation)
        groups = tuple(each for each in report.groups if component_id in each.workers)
        run = self.spec(component_id).run
        text = explain(
            worker,
            deaths,
            bundle=bundle,
            stop=stop,
            everything_paused=report.paused,
            groups=groups,
            rollouts=report.rollouts,
            sockets=self._sockets_of(component_id),
            jobs=jobs,
            command=run.argv if isinstance(run, Command) else (),
        )
        found = diagnosis(
            worker,
            text,
            deaths[0] if deaths else None,
            left=None if bundle is None else bundle.left,
            everything_paused=report.paused,
            groups=groups,
        )
        return _without_secrets(found, cleaner(self.secrets(component_id)))

    def _sockets_of(self, component_id: str) -> dict[str, str]:
        parts = self._requests.parts
        where = {} if parts is None else parts.processes.sockets.addresses()
        named = [
            each.name for spec in self._workers.specs if spec.id == component_id for each in spec.sockets
        ]
        return {name: where[name] for name in named if name in where}

    def origins(self) -> Mapping[str, str | None]:
        """Where its configuration and its database are; only the host of a `System` knows."""
        return {"configuration": None, "database": None}

    def configuration(self) -> Configuration | None:
        """Its settings with their origins; only a supervisor that was started from a file has them."""
        return None

    def nodes(self) -> tuple[NodeStatus, ...]:
        """The nodes of the cluster; a system by itself has none."""
        return ()

    def alerts(self) -> tuple[Alert, ...]:
        """The open alerts and the latest closed ones, the most severe first."""
        report: AlertReport | None = self._requests.alert_desk(ReportAlerts)
        return () if report is None else report.alerts

    def output(self, component_id: str) -> tuple[str, ...]:
        """The last lines that a worker wrote."""
        return tuple(line.text for line in self.written(component_id, last=TAIL_LINES).lines)

    def written(self, *ids: str, after: int | None = None, last: int = 10) -> OutputLines:
        """Output of these workers, or of all: the lines after a line number, or the last lines of each."""
        parts = self._requests.parts
        if parts is None:
            return OutputLines((), 0, 0, "")
        recent = parts.processes.transcript.after(0 if after is None else after)
        if after is not None and not ids:
            return recent
        chosen = ids or [spec.id for spec in self._workers.specs]
        return lines_of({id_: parts.processes.written(id_) for id_ in chosen}, recent, after, last)

    def logged(self, component_id: str, /, query: LogQuery) -> LogPage:
        """The lines of a worker that match, from those that are kept in memory."""
        self.check(component_id)
        lines = self.written(component_id, last=TAIL_LINES).lines
        return page_of([convert(line, LogLine, from_attributes=True) for line in lines], query)

    def follow_output(self, follower: Callable[[OutputLine], None]) -> None:
        """Have this called with every line that a worker writes, on a thread of ours: it must not block."""
        self._requests.running.processes.transcript.follower = follower

    def reopen_logs(self) -> None:
        """Open all log files again by their names; does nothing if the system does not run."""
        parts = self._requests.parts
        if parts is not None:
            parts.processes.logs.reopen()

    def usages(self) -> dict[str, Usage]:
        """What every running worker uses at this moment, including the processes it started."""
        parts = self._requests.parts
        if parts is None:
            return {}
        generations = {worker.component_id: worker.generation for worker in self.report().workers}
        found = {id_: parts.processes.usage(id_, number) for id_, number in generations.items()}
        return {id_: usage for id_, usage in found.items() if usage is not None}

    def strays(self) -> tuple[tuple[int, str], ...]:
        """Processes that a worker started and that left its session, as (pid, component_id).

        Under `rekindle run` they end with their worker. In a host's process they outlive it, and are
        killed with everything else if the host is killed.
        """
        parts = self._requests.parts
        return () if parts is None else parts.processes.strays()

    def notes(self) -> RememberedTexts:
        """What gateways remember across restarts, by name."""
        return self._requests.running.memory

    def commit_times(self) -> CommitTimes:
        """How long commits took."""
        return self._requests.actors.commits

    # ── the past ─────────────────────────────────────────────────────────────────────────

    def deaths(self, component_id: str | None = None, limit: int = 100) -> tuple[DeathRecord, ...]:
        """The latest persisted deaths of one worker or of all, newest first."""
        return self._history.deaths(component_id, limit)

    def history(self, component_id: str, limit: int = 100) -> WorkerHistory:
        """The latest persisted deaths of one worker, newest first, and where they are known from."""
        return WorkerHistory(id=component_id, deaths=self.deaths(component_id, limit))

    def runs(self, component_id: str, limit: int = 100) -> tuple[Run, ...]:
        """The latest runs of a scheduled worker, newest first, with those that were missed."""
        return self._history.runs(component_id, limit)

    def bundles(self, component_id: str, limit: int = 100) -> tuple[Bundle, ...]:
        """The evidence of a worker's latest deaths, newest first."""
        return self._history.bundles(component_id, limit)

    def bundle(self, component_id: str, generation: int) -> Bundle:
        """The evidence of one death; raises `UnknownDeathError` if the store has none."""
        return self._history.bundle(component_id, generation)

    def timeline(self, component_id: str, since_wall_ms: int = 0, limit: int = 100) -> Timeline:
        """What happened to a worker, newest first, and its mean time between failures.

        Raises:
            UnknownWorkerError: there is no such worker, and the store does not know one either.
        """
        now = next((each for each in self.report().workers if each.component_id == component_id), None)
        uptime_s = None if now is None else now.uptime_s
        found = self._history.timeline(component_id, since_wall_ms, limit, uptime_s=uptime_s)
        if now is None and not mentions_worker(found):
            raise self._workers.unknown(component_id)
        return found

    def audited(self, limit: int = 100) -> tuple[AuditEntry, ...]:
        """The latest orders of operators, newest first."""
        return self._history.audited(limit)

    def event_log(self, after_id: int = 0, limit: int = 100, /) -> EventPage:
        """The persisted events after an event id, oldest first."""
        return self._history.event_log(after_id, limit)

    # ── events as they happen ────────────────────────────────────────────────────────────

    def events(self, *topics: str) -> EventStream:
        """Everything that happens from now on; with topics a snapshot of them first, then their changes.

        A reader that does not keep up loses the oldest events; other readers are not affected.
        """
        inbox = LatestInbox()
        self.subscribe(inbox, *topics)
        return EventStream(inbox, lambda: self.unsubscribe(inbox))

    def subscribe(self, receiver: Receiver, /, *topics: str) -> None:
        """Send every event from now on to a receiver, such as the ref of a host's actor.

        A receiver has one subscription: a second call replaces the topics of the first. The system must
        be open: an actor that subscribes in its `on_start` is started after `open` or `start`. `tell` of
        the receiver runs on a thread of the system and must not wait; for a pykka ref it does not.

        With topics such as `worker:*:status` it gets a `Snapshot` first, then a `StateChanged` for
        every change; with topics of the event log, such as `event:*`, it gets numbered events.

        Raises:
            RequestRefusedError: a topic is malformed, or the system is not open.
            TypeError: the receiver has no `tell`.
        """
        if not callable(getattr(receiver, "tell", None)):
            raise TypeError(
                f"a receiver must have a method `tell`, such as the ref of an actor, not {receiver!r}"
            )
        wrong = next((text for text in map(problem, topics) if text is not None), None)
        if wrong is not None:
            raise RequestRefusedError(wrong)
        tell(self._requests.actors.broker, Subscribe(receiver, topics or None))

    def unsubscribe(self, receiver: Receiver, /) -> None:
        """Stop sending events to a receiver."""
        if self._requests.parts is not None:
            tell(self._requests.parts.actors.broker, Unsubscribe(receiver))

    def wait_for(self, component_id: str, *wanted: Status, timeout_s: float) -> WorkerStatus:
        """Wait until a worker has one of these statuses; raises `RequestTimeoutError` if it gets none."""
        return self.wait_until(component_id, lambda worker: worker.status in wanted, timeout_s)

    def wait_until(
        self, component_id: str, condition: Callable[[WorkerStatus], bool], timeout_s: float
    ) -> WorkerStatus:
        """Wait until a condition holds for a worker.

        It is checked after every event and regularly in between: uptime changes without an event.

        Raises:
            RequestTimeoutError: it did not hold in that time.
        """
        deadline = time.monotonic() + timeout_s
        with self.events() as events:
            while not condition(worker := self.status(component_id)):
                left = deadline - time.monotonic()
                if left <= 0:
                    message = f"{component_id} is {worker.shown} after {timeout_s:g} s"
                    raise RequestTimeoutError(f"{message}: {worker.why}" if worker.why else message)
                with suppress(RequestTimeoutError):
                    events.next(min(left, POLL_S))
        return worker


def _without_secrets(found: WorkerDiagnosis, clean: Callable[[str], str]) -> WorkerDiagnosis:
    """The texts that a worker may have written, masked."""
    last = found.last_death
    return replace(
        found,
        text=clean(found.text),
        reason=clean(found.reason),
        last_error=clean(found.last_error),
        last_death=None if last is None else replace(last, decision=clean(last.decision)),
        groups=[replace(each, given_up=each.given_up and clean(each.given_up)) for each in found.groups],
    )
