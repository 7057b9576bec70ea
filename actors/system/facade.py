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

import os
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Self

import pykka

from rekindle import __version__

from ..errors import RequestRefusedError
from ..facts.audit_entry import AuditEntry
from ..facts.records import RememberedWorker
from ..handover import Inheritance
from ..messages import Event, StopResult
from ..ports import Jobs, Store
from ..processes.fingerprints import Fingerprints
from ..processes.spawn.launcher import Launcher
from ..runtime.thread_runtime import ThreadRuntime
from ..spec.policies.alert_policy import AlertPolicy
from ..spec.policies.group import Group
from ..spec.policies.queues.periodic import Periodic, distinct_periodic
from ..spec.policies.queues.queue_policy import QueuePolicy, distinct_queues
from ..spec.policies.retention_policy import Retention
from ..spec.policies.stop_policy import Urgency
from ..spec.spec_changes import Changes
from ..spec.worker_spec import WorkerSpec
from .controls import Controls
from .declared_workers import DeclaredWorkers
from .lifecycle import Lifecycle
from .queues.job_producer import JobProducer
from .requests import Requests
from .stored_history import StoredHistory
from .system_settings import SystemSettings
from .system_view import SystemView


class System(JobProducer, SystemView):
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
        inherited_sockets: Mapping[str, int] | None = None,
        periodic: Iterable[Periodic] = (),
        launcher: Launcher | None = None,
        inheritance: Inheritance | None = None,
        queue_policies: Iterable[QueuePolicy] = (),
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
            inherited_sockets: descriptors of listening sockets that are open already, by the names of
                the sockets; the system uses them and closes them.
            periodic: the jobs that are put into queues by the clock.
            launcher: where processes are started; None: on a thread of the system's own.
            inheritance: what the former program of this process left; only `rekindle run` has one.
            queue_policies: the limits of queues.

        Raises:
            SpecError: two workers share an id, or wait for each other; or a group or a periodic job is
                invalid.
            TypeError: the store is not a store.
        """
        if isinstance(store, (str, os.PathLike)):
            raise TypeError(f"store must be a store, such as open_store({str(store)!r}), not {store!r}")
        try:
            workers = DeclaredWorkers(specs, groups)
            clocked = distinct_periodic(periodic, workers.queues)
            limits = tuple(policy.limits for policy in distinct_queues(queue_policies))
        except BaseException:
            store.close()  # the caller may hold no other reference to it
            raise
        fingerprints = Fingerprints()
        super().__init__(Requests(workers), workers, StoredHistory(store))
        self._controls = Controls(self._requests, self._workers, store, fingerprints)
        self._lifecycle = Lifecycle(
            SystemSettings(
                max_concurrent_starts,
                guarded,
                adopts_orphans,
                launcher,
                inheritance,
                alerts,
                retention,
                inherited_sockets,
                clocked,
                limits,
            ),
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

    def sockets(self) -> dict[str, str]:
        """Where the listening sockets of the workers are bound, by name.

        Raises:
            RequestRefusedError: the system is not running.
        """
        return self._requests.running.processes.sockets.addresses()

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

    def roll_out(self, name: str, *, surge: int | None = None, roll_back: bool = True) -> None:
        """Begin to give the workers of a group new processes; returns at once.

        Up to `surge` additional workers start first, and each old process stops only when they are ready.
        The first new process that is not ready in time, or ends before it has settled, ends the rollout;
        `report().rollouts` tells how it goes.

        Args:
            name: the `group` of the workers, or the id of one.
            surge: how many additional workers there may be; by default as the `rollout` of the workers says.
            roll_back: whether workers that were replaced get their old configuration back.

        Raises:
            RequestRefusedError: there is no such group, none of it runs, or a rollout is under way.
        """
        self._controls.roll_out(name, surge, roll_back)

    def reset(self, component_id: str) -> None:
        """Clear a worker's counters and failure; it is not started."""
        self._controls.reset(component_id)

    def run_now(self, component_id: str) -> None:
        """Begin a run of a scheduled worker now, beside those of its schedule.

        Raises:
            RequestRefusedError: it has no schedule, is stopped or paused, or its `overlap` prevents it.
        """
        self._controls.run_now(component_id)

    def signal(self, component_id: str, signal: int | str) -> None:
        """Send a worker's process a signal, such as `SIGHUP`; SIGKILL goes to its whole process group.

        A process that it ends counts as dead, like any other.

        Raises:
            RequestRefusedError: the worker has no process, or there is no such signal.
        """
        self._controls.signal(self.status(component_id), signal)

    def pause(self, *component_ids: str, reason: str = "", for_s: float | None = None) -> None:
        """Pause these workers, or the whole system; a pause lasts across restarts of the supervisor.

        With `for_s` the pause ends by itself after that many seconds.
        """
        self._controls.pause(component_ids or None, reason, for_s)

    def resume(self, *component_ids: str) -> bool:
        """End a pause; returns False if there was none."""
        return self._controls.resume(component_ids or None)

    def add(self, spec: WorkerSpec, *, known: RememberedWorker | None = None) -> None:
        """Supervise one more worker; with `known` it brings its counters and its failure along."""
        self._controls.add(spec, known)

    def remove(self, component_id: str, timeout_s: float | None = None) -> None:
        """Stop a worker and forget it."""
        self._controls.remove(component_id, timeout_s)

    def change(self, specs: Iterable[WorkerSpec], groups: Iterable[Group] = ()) -> Changes:
        """Supervise exactly these workers and groups from now on; unchanged workers are left alone."""
        return self._controls.change(specs, groups)

    def change_worker(self, spec: WorkerSpec) -> None:
        """Supervise the worker of that id by this spec from now on; the others are left alone."""
        self._controls.change(spec if each.id == spec.id else each for each in self._workers.specs)

    def guard_until(self, until: float) -> None:
        """Have the guardian kill all workers at this time on CLOCK_BOOTTIME, unless a later one is set.

        For a node of a cluster, whose workers are started elsewhere when its lease is over.
        """
        if self._requests.parts is not None:
            self._requests.parts.processes.set_lease(until)

    def change_queues(self, periodic: Iterable[Periodic] = (), policies: Iterable[QueuePolicy] = ()) -> None:
        """Enqueue exactly these jobs by the clock from now on, and have exactly these limits of queues."""
        jobs = distinct_periodic(periodic, self._workers.queues)
        self._controls.change_queues(jobs, tuple(each.limits for each in distinct_queues(policies)))

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

    def upgrade(self, python: str | None = None, /, *, only_check: bool = False) -> Mapping[str, object]:
        """Refuse: only a process that does nothing but supervise can be replaced, as `rekindle run`.

        Raises:
            RequestRefusedError: always.
        """
        del python, only_check
        raise RequestRefusedError(
            "only the supervisor of `rekindle run` can be upgraded: this one is a part of another program,"
            " which would be replaced with it"
        )

    def latest_upgrade(self) -> Mapping[str, object]:
        """What became of the latest upgrade; there is none."""
        return {"version": __version__, "number": 0, "failed": None, "blind_ms": None, "pid": os.getpid()}

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
        return self._controls.served()

    def pause_queue(self, queue: str, *, reason: str = "", for_s: float | None = None) -> None:
        """Start no further job of a queue, across restarts, for this time or until it is resumed.

        Raises:
            UnknownQueueError: no worker of this system serves the queue.
        """
        self._controls.pause_queue(queue, reason, for_s)

    def resume_queue(self, queue: str) -> bool:
        """End the pause of a queue; returns False if there was none."""
        return self._controls.jobs.resume(queue)
