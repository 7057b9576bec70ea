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

import os
import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from loguru import logger

from rekindle.worker.guardian import marked_processes, sweep

from ..errors import RequestRefusedError, RequestTimeoutError, StoreUnavailableError
from ..facts.records import MetaSet, Remembered, Retention
from ..messages import Shutdown, StartWorkers, StopResult, WorkersStopped
from ..messages.internal import Flush, Flushed, Keep
from ..messages.internal.to_broker import Subscribe
from ..ports import Store
from ..prober import Prober
from ..processes.process_table import RealProcesses
from ..release_desk import ReleaseDesk
from ..runtime.resilient_actor import tell
from ..runtime.thread_runtime import ThreadRuntime
from ..spec.alert_policy import AlertPolicy
from ..spec.stop_urgency import Urgency
from ..spec.worker_spec import WorkerSpec
from ..supervision import held_work
from .assembly import EVENT_LINGER_S, assemble
from .controls import Operating
from .gateway_memory import Notes
from .inboxes import Inbox
from .queries import Looking
from .requests import ANSWER_S

MARK = "system_mark"
"""The setting that holds the mark of the latest run's processes."""

FORMER_RUN_S = 10.0


RELEASES_S = 2.0
"""How much longer than its tool a release may take when everything stops."""


class System(Operating, Looking):
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
        try:
            super().__init__(specs, store)
        except BaseException:
            store.close()  # who made it for us may have no other hold of it
            raise
        self._max_concurrent_starts = max_concurrent_starts
        self._guarded = guarded
        self._alert_policy = alerts
        self._retention = retention
        self._runtime: ThreadRuntime | None = None
        self._releases: ReleaseDesk | None = None
        self._prober = Prober()
        self._process = os.getpid()
        """The one that it, and so its store, was made in: a fork may use neither."""
        # A signal handler of the host's may stop what it interrupts the start or the stop of.
        self._life = threading.RLock()
        self._is_opening = self._is_stopping = False
        self._ended = False
        self._farewells: tuple[Callable[[], None], ...] = ()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop(0.0)  # nobody else has a hold of it
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start every worker that is not failed or paused; those that run are left alone.

        A failed one under `clear_failed_on_change` is started if it is another version now.

        Raises:
            RequestRefusedError: the system has been stopped, or was made before a fork.
        """
        self.open()
        versions = self._fingerprints.versions(self._specs)
        self._ask(lambda reply: StartWorkers(None, reply, versions))

    def open(self) -> None:
        """Have the actors there, and no worker yet: to subscribe before anything happens.

        Raises:
            RequestRefusedError: the system has been stopped, or was made before a fork.
        """
        if os.getpid() != self._process:
            raise RequestRefusedError(
                f"the system was made by process {self._process}, before a fork:"
                " make it, and open its store, in the process that starts it"
            )
        with self._life:
            if self._ended:
                raise RequestRefusedError("the system has been stopped: make a new one, with a new store")
            if self._actors is None and not self._is_opening:
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
                lane=runtime.core,
            )
            self._prober.mark = self._processes.mark
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
        persistence = self._actors.persistence
        self._notes = Notes(remembered.meta, lambda note: tell(persistence, Keep(note)))

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

    def _release_left_work(self, remembered: Remembered, mark: str) -> None:
        """Release what workers held that were killed together with their supervisor."""
        orders, notes = held_work.left(self._specs, remembered.meta, mark)
        for note in notes:
            tell(self._running().persistence, Keep(note))
        for order in orders:
            whose = order.release.component_id
            logger.info("{} was killed with its supervisor; what it held is released", whose)
            tell(self._releases, order)

    def stop(self, timeout_s: float | None = None) -> tuple[StopResult, ...]:
        """Stop every worker, then everything else; how each of them ended.

        Asked first, then SIGTERM, then SIGKILL, each as the worker's policy says. A second
        call does nothing, nor does one in a fork of the process that made the system.
        """
        if os.getpid() != self._process:
            return ()
        with self._life:
            already, self._is_stopping = self._is_stopping, True
            if already or self._is_opening:
                return ()  # this thread stops it already, or opens it, and ends it then
            if self._actors is None:
                self._forgo()
                return ()
            try:
                return self._shut_down(self._longest_stop() if timeout_s is None else timeout_s)
            finally:
                self._end()

    def _forgo(self) -> None:
        """Let go of the store, with which nothing was opened."""
        if not self._ended:
            self._ended = True
            self._store.close()

    def _end(self) -> None:
        """Do what is left to do, the last of it first in this list; all of it, whatever raises."""
        with ExitStack() as last:
            last.callback(self._tear_down)
            last.callback(self._say_farewell)
            last.callback(self._flush)
            last.callback(self._finish_releases)
            last.callback(self._prober.close, RELEASES_S)

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
        """Be firmer with the workers of a stop that is under way; safe in any thread."""
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
