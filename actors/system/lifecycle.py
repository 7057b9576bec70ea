"""How a system comes into being and how it ends.

    described ─open─▶ running ─stop─▶ ended
        └──────────── stop ───────────▶ ended

The end takes its steps in a fixed order and takes all of them, even if one raises: stop the
workers, finish probes and releases, flush events and records, call the host's callbacks, close
processes, threads and the store.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import ExitStack

import msgspec
from loguru import logger

from rekindle.worker.guardian import marked_processes, sweep

from ..errors import RequestRefusedError, RequestTimeoutError, StoreUnavailableError
from ..facts.records import MetaSet, Remembered
from ..messages import Shutdown, StopResult, WorkersStopped
from ..messages.internal.to_broker import Subscribe
from ..messages.internal.to_persistence import Flush, Flushed, Persist
from ..ports import Receiver, Store
from ..prober import Prober
from ..processes.fingerprints import Fingerprints
from ..processes.process_table import RealProcesses
from ..release_desk import ReleaseDesk
from ..runtime.resilient_actor import tell
from ..runtime.thread_runtime import ThreadRuntime
from ..spec.alert_policy import AlertPolicy
from ..spec.retention_policy import Retention
from ..spec.stop_urgency import Urgency
from ..supervision import held_work
from .assembly import EVENT_LINGER_S, Actors, assemble
from .declared_workers import DeclaredWorkers
from .gateway_memory import GatewayMemory
from .inboxes import Inbox
from .requests import REPLY_TIMEOUT_S, Requests, RunningParts

MARK = "system_mark"
"""The setting that holds the mark of the latest run's processes."""

FORMER_RUN_S = 10.0
"""How long the processes of a former run may take to end."""

RELEASES_S = 2.0
"""How much longer than its tool a release may take when everything stops."""


class Settings(msgspec.Struct, frozen=True):
    """What a host chose for the whole system."""

    max_concurrent_starts: int | None
    guarded: bool
    alerts: AlertPolicy | None
    retention: Retention | None


class Lifecycle:
    """Opens a system once and ends it once.

    A signal handler of the host may call `stop` in a thread that is opening or stopping the
    system. So the lock is reentrant, and a stop during the opening takes effect when that is done.
    """

    def __init__(
        self,
        settings: Settings,
        workers: DeclaredWorkers,
        store: Store,
        *,
        requests: Requests,
        fingerprints: Fingerprints,
        samples: Receiver,
        make_runtime: Callable[[], ThreadRuntime],
    ) -> None:
        self._settings = settings
        self._workers = workers
        self._store = store
        self._requests = requests
        self._fingerprints = fingerprints
        self._samples = samples
        """Receives every event, for the timelines."""
        self._make_runtime = make_runtime
        self._runtime: ThreadRuntime | None = None
        self._processes: RealProcesses | None = None
        self._releases: ReleaseDesk | None = None
        self._prober = Prober()
        self._process = os.getpid()
        """The process that created the system and opened its store; a fork may use neither."""
        self._lock = threading.RLock()
        self._is_opening = self._is_stopping = self._has_ended = False
        self._callbacks: tuple[Callable[[], None], ...] = ()

    # ── opening ──────────────────────────────────────────────────────────────────────────

    def open(self) -> None:
        """Start the actors and no worker; does nothing while the system is open.

        Raises:
            RequestRefusedError: the system has been stopped, or was created before a fork.
        """
        if os.getpid() != self._process:
            raise RequestRefusedError(
                f"the system was created by process {self._process}, before a fork:"
                " create it, and open its store, in the process that starts it"
            )
        with self._lock:
            if self._has_ended:
                raise RequestRefusedError("the system has been stopped: create a new one, with a new store")
            if self._requests.parts is None and not self._is_opening:
                self._open()

    def _open(self) -> None:
        self._is_opening = True
        try:
            self._set_up()
        finally:
            self._is_opening = False
        if self._is_stopping:
            self._end()
            raise RequestRefusedError("the system was stopped while it was opened")

    def _set_up(self) -> None:
        for spec in self._workers.specs:
            for warning in spec.health.warnings():
                logger.warning("worker {}: {}", spec.id, str(warning))
        try:
            self._runtime = runtime = self._make_runtime()
            self._processes = processes = RealProcesses(
                runtime.clock,
                guarded=self._settings.guarded,
                database=self._store.address,
                fingerprints=self._fingerprints,
            )
            self._prober.mark = processes.mark
            remembered = self._store.load()
            self._end_former_run(remembered, processes.mark)
            self._releases = releases = ReleaseDesk(processes.mark)
            actors = self._assemble(runtime, processes, releases, remembered)
            releases.attend(actors.persistence)
            tell(actors.broker, Subscribe(self._samples, None))
        except BaseException:
            self._tear_down()
            raise
        memory = GatewayMemory(remembered.meta, lambda record: tell(actors.persistence, Persist((record,))))
        self._requests.parts = RunningParts(actors, processes, memory)
        self._release_left_work(actors, remembered, processes.mark)

    def _assemble(
        self, runtime: ThreadRuntime, processes: RealProcesses, releases: Receiver, remembered: Remembered
    ) -> Actors:
        return assemble(
            self._workers.specs,
            runtime=runtime,
            processes=processes,
            store=self._store,
            remembered=remembered,
            max_concurrent_starts=self._settings.max_concurrent_starts,
            event_linger_s=EVENT_LINGER_S,
            retention=self._settings.retention,
            run=processes.mark,
            releases=releases,
            alerts=self._settings.alerts,
            prober=self._prober,
        )

    def _end_former_run(self, remembered: Remembered, mark: str) -> None:
        """End what a killed supervisor left behind, before anything is started beside it."""
        former = remembered.meta.get(MARK)
        left = [] if former is None else marked_processes(former)
        if former is not None and left:
            logger.warning("system: ending {} processes that a former run left behind", len(left))
            if not sweep(former, FORMER_RUN_S):
                raise RequestRefusedError(f"processes of a former run cannot be ended: {left}")
        try:
            self._store.commit([MetaSet(MARK, mark), self._workers.queues_record])
        except StoreUnavailableError as error:
            logger.warning("system: the next run will not recognise our processes: {}", str(error))

    def _release_left_work(self, actors: Actors, remembered: Remembered, mark: str) -> None:
        """Release what workers held that were killed together with their supervisor."""
        orders, notes = held_work.left_behind(self._workers.specs, remembered.meta, mark)
        for note in notes:
            tell(actors.persistence, Persist((note,)))
        for order in orders:
            whose = order.release.component_id
            logger.info("system: {} was killed with its supervisor; releasing the work it held", whose)
            tell(self._releases, order)

    # ── stopping ─────────────────────────────────────────────────────────────────────────

    def stop(self, timeout_s: float | None) -> tuple[StopResult, ...]:
        """Stop every worker, then everything else; a second call does nothing, nor does one in a fork."""
        if os.getpid() != self._process:
            return ()
        with self._lock:
            already, self._is_stopping = self._is_stopping, True
            if already or self._is_opening:
                return ()  # this thread is stopping it already, or is opening it and will end it then
            if self._requests.parts is None:
                self._close_unopened()
                return ()
            try:
                return self._stop_workers(
                    self._workers.longest_stop_s + REPLY_TIMEOUT_S if timeout_s is None else timeout_s
                )
            finally:
                self._end()

    def escalate_stop(self, urgency: Urgency) -> None:
        """Make a stop that is in progress more forceful; safe in any thread and in signal handlers."""
        if self._requests.parts is not None:
            tell(self._requests.parts.actors.supervisor, Shutdown(None, urgency))

    def at_stop(self, callback: Callable[[], None]) -> None:
        """Have this called by `stop`, after all workers have ended and all events were delivered."""
        self._callbacks = (*self._callbacks, callback)

    def _close_unopened(self) -> None:
        if not self._has_ended:
            self._has_ended = True
            self._store.close()

    def _stop_workers(self, timeout_s: float) -> tuple[StopResult, ...]:
        inbox = Inbox()
        if not tell(self._requests.actors.supervisor, Shutdown(inbox)):
            logger.error("system: the supervisor was stopped from outside; killing the remaining processes")
            return ()
        try:
            stopped: WorkersStopped = inbox.get(timeout_s)
        except RequestTimeoutError:
            logger.error(
                "system: not every worker stopped within {} s; killing the remaining processes", timeout_s
            )
            return ()
        return stopped.results

    def _end(self) -> None:
        with ExitStack() as steps:  # in reverse order, and all of them, even if one raises
            steps.callback(self._tear_down)
            steps.callback(self._call_callbacks)
            steps.callback(self._flush)
            steps.callback(self._finish_releases)
            steps.callback(self._prober.close, RELEASES_S)

    def _finish_releases(self) -> None:
        """Wait for the last releases, at most for as long as their tools may take."""
        policies = [spec.release for spec in self._workers.specs if spec.release is not None]
        longest = max((policy.timeout_s for policy in policies), default=0.0)
        if self._releases is not None and not self._releases.close(longest + RELEASES_S):
            logger.error("system: not every work item was released in time")

    def _call_callbacks(self) -> None:
        for callback in self._callbacks:
            try:
                callback()
            except Exception as error:  # noqa: BLE001  # the stop goes on
                logger.opt(exception=error).error("system: a callback of `at_stop` raised")
        if self._callbacks:
            self._flush()

    def _flush(self) -> None:
        inbox = Inbox()
        if not tell(self._requests.actors.persistence, Flush(inbox)):
            return
        try:
            flushed: Flushed = inbox.get(REPLY_TIMEOUT_S)
        except RequestTimeoutError:
            logger.error("store: no answer to the last flush; records may be lost")
        else:
            if flushed.unsaved:
                logger.error("store: {} records could not be written and are lost", flushed.unsaved)

    def _tear_down(self) -> None:
        self._requests.parts, self._has_ended = None, True
        if self._processes is not None:
            self._processes.close()
        if self._runtime is not None:
            self._runtime.close()
        self._processes = self._runtime = None
        self._store.close()
