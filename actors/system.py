"""What a host holds: a supervisor with its actors, as ordinary typed methods.

    with System(specs, store=open_store("state/rekindle.db")) as system:
        system.wait_for("worker:tag:0", Status.HEALTHY, timeout_s=10)

The methods wait for the actors' answer, with a timeout, and may be called from any thread.
A host that consists of actors itself tells `system.supervisor` the messages of
`rekindle.actors.messages`, and subscribes its own refs.

A guest in the host's process: no signal handler, no logging set-up, no change of the
environment, nobody else's children; after `stop` no thread, child or descriptor is left.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import pykka
from loguru import logger

from rekindle.worker.guardian import marked_processes, sweep

from . import held_work
from .alert import Alert, AlertPolicy
from .assembly import EVENT_LINGER_S, Actors, assemble, served
from .audit import AuditEntry
from .broker_messages import Subscribe, Unsubscribe
from .bundles import Bundle
from .changes import Changes
from .commit_times import CommitTimes
from .edges import EventStream, Inbox, LatestInbox
from .enqueueing import checked_queue, new_job, payload_text
from .errors import (
    Problem,
    RequestRefusedError,
    RequestTimeoutError,
    SpecError,
    StoreError,
    StoreUnavailableError,
    UnknownDeathError,
    UnknownWorkerError,
)
from .explaining import explain
from .fingerprints import Fingerprints
from .flight_recorder import FlightRecorder
from .health import Status
from .internal_messages import Flush, Flushed, Keep, QueuesTouched
from .jobs import SERVED_QUEUES
from .lifecycle import Urgency
from .messages import (
    AcknowledgeAlert,
    AddWorker,
    AlertReport,
    ChangeWorkers,
    Done,
    Event,
    PauseWorkers,
    Refused,
    RemoveWorker,
    ReportAlerts,
    ReportStatus,
    ResetWorker,
    RestartWorker,
    ResumeWorkers,
    Shutdown,
    StartWorkers,
    StatusReport,
    StopResult,
    StopWorkers,
    WorkersChanged,
    WorkersStopped,
    WorkerStatus,
)
from .notes import Notes
from .ordering import check_order, longest_stop_s
from .ports import Jobs, Receiver, Store
from .prober import Prober
from .processes import RealProcesses
from .records import DeathRecord, EventPage, MetaSet, Remembered, Retention
from .release_desk import ReleaseDesk
from .resources import Usage
from .runtime import ThreadRuntime, tell
from .spec import WorkerSpec, served_by
from .timeline import Timeline
from .told_jobs import ToldJobs
from .topics import problem

MARK = "system_mark"
"""The setting that holds the mark of the latest run's processes."""

FORMER_RUN_S = 10.0

ANSWER_S = 5.0
"""How long a request may take that waits for nothing but the actors."""


RELEASES_S = 2.0
"""How much longer than its tool a release may take when everything stops."""

GLANCE_S = 0.05
"""How often `wait_until` looks while nothing happens."""


Answer = Done | WorkersStopped | WorkersChanged | StatusReport


class System:
    """A supervisor and its workers. Use it as a context manager, or call `start` and `stop`."""

    def __init__(
        self,
        specs: Iterable[WorkerSpec],
        *,
        store: Store,
        max_concurrent_starts: int | None = None,
        guarded: bool = True,
        alerts: AlertPolicy | None = None,
        retention: Retention | None = None,
    ) -> None:
        """Describe a system; nothing runs yet.

        Args:
            specs: the workers.
            store: where restart history is kept; the system closes it when it stops.
            max_concurrent_starts: how many workers may be starting at the same time.
            guarded: keep a small process beside us that ends the workers if we are killed.
            alerts: keep alerts, under this policy; None keeps none.
            retention: how much of the past is kept.

        Raises:
            SpecError: two workers share an id.
        """
        self._specs = _distinct(specs)
        self._store = store
        self._max_concurrent_starts = max_concurrent_starts
        self._guarded = guarded
        self._alert_policy = alerts
        self._retention = retention
        self._runtime: ThreadRuntime | None = None
        self._processes: RealProcesses | None = None
        self._actors: Actors | None = None
        self._releases: ReleaseDesk | None = None
        self._prober = Prober()
        self._fingerprints = Fingerprints()
        self._flight_recorder = FlightRecorder(store)
        self._process = os.getpid()
        self._life = threading.Lock()
        self._ended = False
        self._notes: Notes | None = None
        self._farewells: tuple[Callable[[], None], ...] = ()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # ── life ─────────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        """Start every worker that is not failed or paused; those that run are left alone.

        A failed one under `clear_failed_on_change` is started if it is another version now.

        Raises:
            RequestRefusedError: the system has been stopped; its store is closed.
        """
        self.open()
        versions = self._fingerprints.versions(self._specs)
        self._ask(lambda reply: StartWorkers(None, reply, versions))

    def open(self) -> None:
        """Have the actors there, and no worker yet: to subscribe before anything happens.

        Raises:
            RequestRefusedError: the system has been stopped; its store is closed.
        """
        with self._life:
            if self._ended:
                raise RequestRefusedError("the system has been stopped: make a new one, with a new store")
            if self._actors is None:
                self._set_up()

    def _make_runtime(self) -> ThreadRuntime:
        return ThreadRuntime()

    def _set_up(self) -> None:
        for spec in self._specs:
            for warning in spec.health.warnings():
                logger.warning("worker {}: {}", spec.id, str(warning))
        try:
            self._runtime = runtime = self._make_runtime()
            self._processes = RealProcesses(
                runtime.clock,
                guarded=self._guarded,
                database=self._store.address,
                fingerprints=self._fingerprints,
            )
            remembered = self._store.load()
            self._end_former_run(remembered, self._processes.mark)
            self._releases = ReleaseDesk(self._processes.mark)
            self._actors = assemble(
                self._specs,
                runtime=runtime,
                processes=self._processes,
                store=self._store,
                remembered=remembered,
                max_concurrent_starts=self._max_concurrent_starts,
                event_linger_s=EVENT_LINGER_S,
                retention=self._retention,
                run=self._processes.mark,
                releases=self._releases,
                alerts=self._alert_policy,
                prober=self._prober,
            )
            self._releases.attend(self._actors.broker)
            tell(self._actors.broker, Subscribe(self._flight_recorder, None))
        except BaseException:
            self._tear_down()
            raise
        self._release_left_work(remembered, self._processes.mark)
        recorder = self._actors.recorder
        self._notes = Notes(remembered.meta, lambda note: tell(recorder, Keep(note)))

    def _release_left_work(self, remembered: Remembered, mark: str) -> None:
        """Release what workers held that were killed together with their supervisor."""
        orders, notes = held_work.left(self._specs, remembered.meta, mark)
        for note in notes:
            tell(self._running().recorder, Keep(note))
        for order in orders:
            whose = order.release.component_id
            logger.info("{} was killed with its supervisor; what it held is released", whose)
            tell(self._releases, order)

    def _end_former_run(self, remembered: Remembered, mark: str) -> None:
        """End what a killed supervisor left behind, before anything is started beside it."""
        former = remembered.meta.get(MARK)
        left = [] if former is None else marked_processes(former)
        if former is not None and left:
            logger.warning("{} processes of a former run are still there and are ended", len(left))
            if not sweep(former, FORMER_RUN_S):
                raise RequestRefusedError(f"processes of a former run cannot be ended: {left}")
        try:
            self._store.commit([MetaSet(MARK, mark), self._served()])
        except StoreUnavailableError as error:
            logger.warning("a next run will not recognise our processes: {}", str(error))

    def stop(self, timeout_s: float | None = None) -> tuple[StopResult, ...]:
        """Stop every worker, then everything else; how each of them ended.

        Asked first, then SIGTERM, then SIGKILL, each as the worker's policy says. A second
        call does nothing, nor does one in a fork of the process that started the system.
        """
        if os.getpid() != self._process:
            return ()
        with self._life:
            if self._actors is None:
                return ()
            try:
                return self._shut_down(self._longest_stop() if timeout_s is None else timeout_s)
            finally:
                self._prober.close(RELEASES_S)
                self._finish_releases()
                self._flush()
                self._say_farewell()
                self._tear_down()

    def _shut_down(self, patience: float) -> tuple[StopResult, ...]:
        inbox = Inbox()
        if not tell(self._running().supervisor, Shutdown(inbox)):
            logger.error("the supervisor was stopped by somebody else; what is left is killed")
            return ()
        try:
            stopped: WorkersStopped = inbox.get(patience)
        except RequestTimeoutError:
            logger.error("not every worker stopped within {} s; what is left is killed", patience)
            return ()
        return stopped.results

    def hasten(self, urgency: Urgency) -> None:
        """Be firmer with the workers of a stop that is under way; safe in a signal handler."""
        if self._actors is not None:
            tell(self._actors.supervisor, Shutdown(None, urgency))

    def _finish_releases(self) -> None:
        """Have what the last ones left behind released, which takes a tool's own time at the most."""
        longest = max(
            (spec.release.timeout_s for spec in self._specs if spec.release is not None), default=0.0
        )
        if self._releases is not None and not self._releases.close(longest + RELEASES_S):
            logger.error("not every work item was released in time")

    def at_stop(self, callback: Callable[[], None]) -> None:
        """Have this called by `stop`, once every worker has stopped and every event has been told.

        What it tells the actors is still carried out and kept. It must not take long.
        """
        self._farewells = (*self._farewells, callback)

    def _say_farewell(self) -> None:
        for callback in self._farewells:
            try:
                callback()
            except Exception as error:  # noqa: BLE001  # the stop goes on
                logger.opt(exception=error).error("a callback of a stop raised")
        if self._farewells:
            self._flush()

    def _flush(self) -> None:
        inbox = Inbox()
        if not tell(self._running().broker, Flush(inbox)):
            return
        try:
            flushed: Flushed = inbox.get(ANSWER_S)
        except RequestTimeoutError:
            logger.error("the store did not answer; records may be lost")
        else:
            if flushed.unsaved:
                logger.error("{} records could not be written and are lost", flushed.unsaved)

    def _tear_down(self) -> None:
        self._actors, self._ended = None, True
        if self._processes is not None:
            self._processes.close()
        if self._runtime is not None:
            self._runtime.close()
        self._processes = self._runtime = None
        self._store.close()

    def _longest_stop(self) -> float:
        return longest_stop_s(self._specs) + ANSWER_S

    # ── what an operator does ────────────────────────────────────────────────────────────

    def start_worker(self, component_id: str) -> None:
        """Start one worker now, whatever delay it is in; its counters stay.

        A failed one under `clear_failed_on_change` is started, with its counters cleared, if it is
        another version now.

        Raises:
            RequestRefusedError: it is failed, and stays so.
        """
        versions = self._fingerprints.versions(spec for spec in self._specs if spec.id == component_id)
        self._ask(lambda reply: StartWorkers((component_id,), reply, versions))

    def stop_worker(self, component_id: str, timeout_s: float | None = None) -> StopResult:
        """Stop one worker; it stays down until it is started again."""
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
        """Clear a worker's counters and start it afresh, now."""
        self._ask(lambda reply: RestartWorker(component_id, reply))

    def reset(self, component_id: str) -> None:
        """Clear a worker's counters and failure; it is not started."""
        self._ask(lambda reply: ResetWorker(component_id, reply))

    def pause(self, *component_ids: str, reason: str = "", for_s: float | None = None) -> None:
        """Pause these workers, or the whole system; remembered across restarts.

        With `for_s` the pause ends by itself after so many seconds.
        """
        self._ask(lambda reply: PauseWorkers(component_ids or None, reply, reason, for_s))

    def resume(self, *component_ids: str) -> None:
        """End a pause."""
        self._ask(lambda reply: ResumeWorkers(component_ids or None, reply))

    def add(self, spec: WorkerSpec) -> None:
        """Supervise one more worker."""
        versions = self._fingerprints.versions([spec])
        self._ask(lambda reply: AddWorker(spec, reply, versions))
        self._know((*self._specs, spec))

    def remove(self, component_id: str, timeout_s: float | None = None) -> None:
        """Stop a worker and forget it."""
        patience = self._longest_stop() if timeout_s is None else timeout_s
        self._ask(lambda reply: RemoveWorker(component_id, reply), patience)
        self._know(tuple(spec for spec in self._specs if spec.id != component_id))

    def change(self, specs: Iterable[WorkerSpec]) -> Changes:
        """Supervise exactly these workers from now on; what did not change is left alone."""
        wanted = _distinct(specs)
        versions = self._fingerprints.versions(wanted)
        changed = self._ask(lambda reply: ChangeWorkers(wanted, reply, versions))
        assert isinstance(changed, WorkersChanged)
        self._know(wanted)
        return changed.changes

    def _know(self, specs: tuple[WorkerSpec, ...]) -> None:
        before, self._specs = self._served(), specs
        if self._served() != before:
            tell(self._running().recorder, Keep(self._served()))
        tell(self._running().watch, served(specs))

    def _served(self) -> MetaSet:
        return MetaSet(SERVED_QUEUES, json.dumps(self.queues))

    # ── jobs ─────────────────────────────────────────────────────────────────────────────

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

    # ── what there is to see ─────────────────────────────────────────────────────────────

    def report(self) -> StatusReport:
        """Every worker, and how the store is."""
        report = self._ask(ReportStatus)
        assert isinstance(report, StatusReport)
        return report

    def status(self, component_id: str) -> WorkerStatus:
        """One worker."""
        for worker in self.report().workers:
            if worker.component_id == component_id:
                return worker
        raise UnknownWorkerError(component_id)

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
        raise UnknownWorkerError(component_id)

    def explain(self, component_id: str) -> str:
        """Why a worker is as it is, when it is tried again, and what can be done."""
        worker = self.status(component_id)
        try:
            deaths = self.deaths(component_id, limit=1)
        except StoreError:
            deaths = ()
        return explain(worker, deaths)

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
            raise UnknownWorkerError(component_id)
        return found

    def audit(self, entry: AuditEntry) -> None:
        """Have an operator's order kept."""
        tell(self._running().recorder, Keep(entry))

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

    def output(self, component_id: str) -> tuple[str, ...]:
        """The last lines that a worker wrote."""
        return () if self._processes is None else self._processes.output(component_id)

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
            self._processes.reap_strangers()

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

    def announce(self, event: Event) -> None:
        """Have an event of a host's own edge numbered, kept and told like any other."""
        tell(self._running().broker, event)

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

    # ── asking ───────────────────────────────────────────────────────────────────────────

    def _running(self) -> Actors:
        if self._actors is None:
            raise RequestRefusedError("the system is not running")
        return self._actors

    def _ask(self, request: Callable[[Receiver], object], timeout_s: float = ANSWER_S) -> Answer:
        """Tell the Supervisor a request with a place for the answer, and wait for it there."""
        inbox = Inbox()
        if not tell(self._running().supervisor, request(inbox)):
            raise RequestRefusedError("the supervisor has ended")
        answer: Answer | Refused = inbox.get(timeout_s)
        if isinstance(answer, Refused):
            if answer.unknown is not None:
                raise UnknownWorkerError(answer.unknown)
            raise RequestRefusedError(answer.reason)
        return answer


def _distinct(specs: Iterable[WorkerSpec]) -> tuple[WorkerSpec, ...]:
    chosen: dict[str, WorkerSpec] = {}
    for spec in specs:
        if spec.id in chosen:
            raise SpecError(spec.id, [Problem("id", "is used by two workers")])
        chosen[spec.id] = spec
    check_order(chosen.values())
    return tuple(chosen.values())
