"""What a host holds: a supervisor with its actors, as ordinary typed methods.

    with System(specs, store=open_store("state/rekindle.db")) as system:
        system.wait_for("worker:tag:0", Status.HEALTHY, timeout_s=10)

The methods wait for the actors' replies, with a timeout, and may be called from any thread.
A host that consists of actors itself tells `system.supervisor` the messages of
`rekindle.actors.messages`, and subscribes its own refs.

A system is a guest in the host's process: it installs no signal handler, does not configure
logging, does not change the environment, and does not touch the host's own children. After
`stop` it leaves no thread, child or descriptor behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Self

import pykka

from ..deaths.crash_bundle import Bundle
from ..facts.alert import Alert
from ..facts.audit_entry import AuditEntry
from ..facts.commit_times import CommitTimes
from ..facts.health_status import Status
from ..facts.records import DeathRecord, EventPage
from ..facts.usage import Usage
from ..messages import Event, StatusReport, StopResult, WorkerStatus
from ..ports import Jobs, Receiver, Store
from ..processes.fingerprints import Fingerprints
from ..processes.watch.transcript import OutputLine, OutputLines
from ..runtime.thread_runtime import ThreadRuntime
from ..spec.policies.alert_policy import AlertPolicy
from ..spec.policies.group import Group
from ..spec.policies.retention_policy import Retention
from ..spec.policies.stop_policy import Urgency
from ..spec.spec_changes import Changes
from ..spec.worker_spec import WorkerSpec
from ..views.timeline import Timeline
from .controls import Controls
from .declared_workers import DeclaredWorkers
from .gateway_memory import GatewayMemory
from .inboxes import EventStream
from .lifecycle import Lifecycle, Settings
from .queries import Queries
from .requests import Requests
from .stored_history import History


class System:
    """A supervisor and its workers. Use it as a context manager, or call `start` and `stop`."""

    def __init__(
        self,
        specs: Iterable[WorkerSpec],
        *,
        store: Store,
        groups: Iterable[Group] = (),
        max_concurrent_starts: int | None = None,
        guarded: bool = True,
        adopts_orphans: bool = False,
        alerts: AlertPolicy | None = None,
        retention: Retention | None = None,
    ) -> None:
        """Describe a system; nothing runs yet.

        Args:
            specs: the workers.
            groups: the groups of workers that stand and fall together.
            store: where restart history is kept; the system closes it when it stops.
            max_concurrent_starts: how many workers may be starting at the same time.
            guarded: run a small process beside the host that ends the workers if the host is killed.
            adopts_orphans: this process is a subreaper, and starts no children but the system's; what
                a worker detached is then ended with the worker.
            alerts: the policy for alerts; None: this system keeps no alerts.
            retention: how much of the past is kept.

        Raises:
            SpecError: two workers share an id, or wait for each other; or a group is invalid.
        """
        try:
            self._workers = DeclaredWorkers(specs, groups)
        except BaseException:
            store.close()  # the caller may hold no other reference to it
            raise
        fingerprints = Fingerprints()
        self._requests = Requests(self._workers)
        self._history = History(store)
        self._queries = Queries(self._requests, self._workers, self._history)
        self._controls = Controls(self._requests, self._workers, store, fingerprints)
        self._lifecycle = Lifecycle(
            Settings(max_concurrent_starts, guarded, adopts_orphans, alerts, retention),
            self._workers,
            store,
            requests=self._requests,
            fingerprints=fingerprints,
            samples=self._history.timelines,
            declared=self._controls,
            make_runtime=self._make_runtime,
        )

    def _make_runtime(self) -> ThreadRuntime:
        """The threads that the actors run on; chaos runs replace them by recorded ones."""
        return ThreadRuntime()

    # ── the life of the system ───────────────────────────────────────────────────────────

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop(0.0)  # the caller gets no reference to it
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start every worker that is not failed or paused; running workers are left alone.

        A failed worker with `clear_failed_on_change` is started if it is another version now.

        Raises:
            RequestRefusedError: the system has been stopped, or was created before a fork.
        """
        self.open()
        self._controls.start_all()

    def open(self) -> None:
        """Start the actors and no worker, so that a host can subscribe before anything happens.

        Raises:
            RequestRefusedError: the system has been stopped, or was created before a fork.
        """
        self._lifecycle.open()

    def stop(self, timeout_s: float | None = None) -> tuple[StopResult, ...]:
        """Stop every worker, then everything else; returns how each worker ended.

        A worker is asked first, then gets SIGTERM, then SIGKILL, as its stop policy says. A second
        call does nothing, nor does a call in a fork of the process that created the system.
        """
        return self._lifecycle.stop(timeout_s)

    def escalate_stop(self, urgency: Urgency) -> None:
        """Make a stop that is in progress more forceful; safe in any thread and in signal handlers."""
        self._lifecycle.escalate_stop(urgency)

    hasten = escalate_stop  # the former name

    def at_stop(self, callback: Callable[[], None]) -> None:
        """Have this called by `stop`, after all workers have ended and all events were delivered.

        Messages that it sends to the actors are still handled and persisted. It must not take long.
        """
        self._lifecycle.at_stop(callback)

    @property
    def supervisor(self) -> pykka.ActorRef[Any]:
        """The ref that takes the commands of `rekindle.actors.messages` by `tell`."""
        return self._requests.actors.supervisor

    @property
    def mark(self) -> str:
        """The value of REKINDLE_SYSTEM in the environment of every process of this system."""
        return self._requests.running.processes.mark

    # ── orders ───────────────────────────────────────────────────────────────────────────

    def start_worker(self, component_id: str) -> bool:
        """Start one worker now, without waiting for its delay; returns False if it is running already.

        Its counters stay, except those of a failed worker with `clear_failed_on_change` that is
        another version now: they are cleared, and it is started.

        Raises:
            RequestRefusedError: it is failed and stays failed.
            PausedError: it is paused.
        """
        return self._controls.start(component_id)

    def stop_worker(self, component_id: str, timeout_s: float | None = None) -> StopResult:
        """Stop one worker; it stays stopped until you start it or start a new system."""
        return self._controls.stop((component_id,), timeout_s)[0]

    def stop_workers(
        self, timeout_s: float | None = None, urgency: Urgency = Urgency.GRACEFUL
    ) -> tuple[StopResult, ...]:
        """Stop all workers; the system stays open, and `start` starts them again."""
        return self._controls.stop(None, timeout_s, urgency)

    def restart(self, component_id: str) -> None:
        """Clear a worker's counters and start it afresh, now.

        Raises:
            PausedError: it is paused; its counters stay.
        """
        self._controls.restart(component_id)

    def reset(self, component_id: str) -> None:
        """Clear a worker's counters and failure; it is not started."""
        self._controls.reset(component_id)

    def signal(self, component_id: str, signal: int | str) -> None:
        """Send a worker's process a signal, such as `SIGHUP`; SIGKILL goes to its whole process group.

        A process that it ends counts as dead, like any other.

        Raises:
            RequestRefusedError: the worker has no process, or there is no such signal.
        """
        self._controls.signal(self._queries.status(component_id), signal)

    def pause(self, *component_ids: str, reason: str = "", for_s: float | None = None) -> None:
        """Pause these workers, or the whole system; a pause lasts across restarts of the supervisor.

        With `for_s` the pause ends by itself after that many seconds.
        """
        self._controls.pause(component_ids or None, reason, for_s)

    def resume(self, *component_ids: str) -> bool:
        """End a pause; returns False if there was none."""
        return self._controls.resume(component_ids or None)

    def add(self, spec: WorkerSpec) -> None:
        """Supervise one more worker."""
        self._controls.add(spec)

    def remove(self, component_id: str, timeout_s: float | None = None) -> None:
        """Stop a worker and forget it."""
        self._controls.remove(component_id, timeout_s)

    def change(self, specs: Iterable[WorkerSpec], groups: Iterable[Group] = ()) -> Changes:
        """Supervise exactly these workers and groups from now on; unchanged workers are left alone."""
        return self._controls.change(specs, groups)

    def audit(self, entry: AuditEntry) -> None:
        """Have an operator's order persisted."""
        self._controls.audit(entry)

    def acknowledge(self, alert_id: int, by: str) -> None:
        """Acknowledge an alert in a person's name; raises `RequestRefusedError` if there is no such alert."""
        self._controls.acknowledge(alert_id, by)

    def announce(self, event: Event) -> None:
        """Have an event of the host's own gateway numbered, persisted and published like any other.

        Raises:
            TypeError: it is not one of the events of `rekindle.actors.messages`, such as `GatewayLost`,
                or a field of it has the wrong type. A host publishes events of its own types itself.
        """
        self._controls.announce(event)

    def reap_strangers(self) -> None:
        """Reap ended children of this process that are not workers of this system.

        Only for a process that does nothing but supervise and adopts what its workers leave behind:
        in any other host it would take the exit status of the host's own children.
        """
        if self._requests.parts is not None:
            self._requests.parts.processes.reap_orphans()

    # ── jobs ─────────────────────────────────────────────────────────────────────────────

    @property
    def jobs(self) -> Jobs:
        """The job queues: what is in them, and what an operator can do with it."""
        return self._controls.jobs

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues that the workers of this system serve."""
        return self._workers.queues

    def enqueue(
        self,
        queue: str,
        payload: object,
        *,
        priority: int = 0,
        delay_s: float = 0.0,
        max_retries: int | None = None,
    ) -> int:
        """Put a job into a queue and return its id. The job is durable when this returns.

        Other programs use `rekindle.persistence.open_queue`, which explains the arguments.

        Raises:
            UnknownQueueError: no worker of this system serves the queue.
            PayloadError: the payload is not JSON, or a number is out of range.
            StoreUnavailableError: the database cannot be written to now.
        """
        return self._controls.enqueue(
            queue, payload, priority=priority, delay_s=delay_s, max_retries=max_retries
        )

    # ── the present ──────────────────────────────────────────────────────────────────────

    def report(self) -> StatusReport:
        """Every worker and the state of the store."""
        return self._queries.report()

    def status(self, component_id: str) -> WorkerStatus:
        """One worker."""
        return self._queries.status(component_id)

    def check_answers(self) -> None:
        """Raise `RequestTimeoutError` if the actors or the watcher of the processes do not answer.

        A watcher that does not answer is also published as `SupervisionStalled`, once until it answers.
        """
        self._queries.check_answers()

    def is_healthy(self, component_id: str, max_age_s: float | None = None) -> bool:
        """Whether a worker is healthy, and its last heartbeat, if it sends any, is recent enough."""
        return self._queries.is_healthy(component_id, max_age_s)

    def check(self, component_id: str) -> None:
        """Raise `UnknownWorkerError` if there is no such worker."""
        self._queries.status(component_id)

    def spec(self, component_id: str) -> WorkerSpec:
        """How a worker is declared."""
        return self._workers.get(component_id)

    def secrets(self, component_id: str) -> frozenset[str]:
        """What must not be shown of a worker: secrets of its environment, the database's password."""
        return self._queries.secrets(component_id)

    def explain(self, component_id: str) -> str:
        """Why a worker is in its state, when it is tried again, and what you can do."""
        return self._queries.explain(component_id)

    def alerts(self) -> tuple[Alert, ...]:
        """The open alerts and the latest closed ones, the most severe first."""
        return self._queries.alerts()

    def output(self, component_id: str) -> tuple[str, ...]:
        """The last lines that a worker wrote."""
        return self._queries.output(component_id)

    def written(self, *ids: str, after: int | None = None, last: int = 10) -> OutputLines:
        """Output of these workers, or of all: the lines after a line number, or the last lines of each."""
        return self._queries.written(*ids, after=after, last=last)

    def follow_output(self, follower: Callable[[OutputLine], None]) -> None:
        """Have this called with every line that a worker writes, on a thread of ours: it must not block."""
        self._queries.follow_output(follower)

    def usages(self) -> dict[str, Usage]:
        """What every running worker uses at this moment, including the processes it started."""
        return self._queries.usages()

    def strays(self) -> tuple[tuple[int, str], ...]:
        """Processes that a worker started and that left its session, as (pid, component_id).

        Under `rekindle run` they end with their worker. In a host's process they outlive it, and are
        killed with everything else if the host is killed.
        """
        return self._queries.strays()

    def notes(self) -> GatewayMemory:
        """What gateways remember across restarts, by name."""
        return self._requests.running.memory

    def commit_times(self) -> CommitTimes:
        """How long commits took."""
        return self._requests.actors.commits

    # ── the past ─────────────────────────────────────────────────────────────────────────

    def deaths(self, component_id: str | None = None, limit: int = 100) -> tuple[DeathRecord, ...]:
        """The latest persisted deaths of one worker or of all, newest first."""
        return self._history.deaths(component_id, limit)

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
        return self._queries.timeline(component_id, since_wall_ms, limit)

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
        return self._queries.events(*topics)

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
        self._queries.subscribe(receiver, *topics)

    def unsubscribe(self, receiver: Receiver, /) -> None:
        """Stop sending events to a receiver."""
        self._queries.unsubscribe(receiver)

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
        return self._queries.wait_until(component_id, condition, timeout_s)
