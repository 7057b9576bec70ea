"""How a system comes into being and how it ends.

    described ─open─▶ running ─stop─▶ ended
        └──────────── stop ───────────▶ ended

The end takes all of its steps in this order, even if one raises: stop the workers, finish probes and
releases, flush events and records, call the host's callbacks, close processes, threads and the store.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import ExitStack

from loguru import logger

from rekindle.worker.guardian import marked_processes, sweep

from ..breaker_prober import BreakerProber
from ..errors import RequestRefusedError, RequestTimeoutError, StoreError, StoreUnavailableError
from ..facts.jobs import CURRENT_RUN
from ..facts.records import MetaSet, Remembered
from ..handover import Estate
from ..messages import Shutdown, StopResult, WorkersStopped
from ..messages.internal.hand_over import GoOn, WentOn
from ..messages.internal.to_broker import Subscribe
from ..messages.internal.to_persistence import Persist
from ..messages.internal.to_supervisor import StallCheckDue
from ..ports import ClaimSource, Receiver, Store
from ..processes.fingerprints import Fingerprints
from ..processes.process_table import RealProcesses
from ..runtime.lanes import attempt
from ..runtime.resilient_actor import tell
from ..runtime.thread_runtime import ThreadRuntime
from ..spec.policies.stop_policy import Urgency
from ..spec.policies.work_item_policy import ReleaseOrder
from ..supervision.after_death import held_work
from ..supervisor.handed_over_actors import HandedOverActors
from ..work_item_desk import WorkItemDesk
from .actor_hand_over import PART, asked_memory, inherited_memory, inherited_records, leave_memory
from .assembly import EVENT_LINGER_S, RETRY_S, Actors, Options, assemble
from .declared_workers import DeclaredWorkers
from .inboxes import Inbox
from .last_records import WRITABLE_S, LastRecords
from .remembered_texts import RememberedTexts
from .requests import REPLY_TIMEOUT_S, Requests, RunningParts, refuse_to_wait
from .system_settings import SystemSettings

FORMER_RUN_S = 10.0
"""How long the processes of a former run may take to end."""

FREEZE_S = 5.0
"""How long each step of a freeze may take."""

HAND_OVER_S = 60.0
"""How long the actors may take to say what they know, and to continue with it: there is no other way then."""

RELEASES_S = 2.0
"""How much longer than its tool a release may take when everything stops."""


class Lifecycle:
    """Opens a system once and ends it once.

    A signal handler of the host may call `stop` in a thread that is opening or stopping the
    system. So the lock is reentrant, and a stop during the opening takes effect when that is done.
    """

    def __init__(
        self,
        settings: SystemSettings,
        workers: DeclaredWorkers,
        store: Store,
        *,
        requests: Requests,
        fingerprints: Fingerprints,
        samples: Receiver,
        declared: Receiver,
        make_runtime: Callable[[], ThreadRuntime],
    ) -> None:
        self._settings = settings
        self._workers = workers
        self._store = store
        self._requests = requests
        self._fingerprints = fingerprints
        self._samples = samples
        """Receives every event, for the timelines."""
        self._declared = declared
        """Gets `WorkersDeclared`."""
        self._make_runtime = make_runtime
        self._runtime: ThreadRuntime | None = None
        self._processes: RealProcesses | None = None
        self._releases: WorkItemDesk | None = None
        self._interrupted: tuple[ReleaseOrder, ...] = ()
        """The releases that the former program of this process had begun."""
        self._prober = BreakerProber()
        self._lock = threading.RLock()
        self._is_opening = self._is_stopping = self._has_ended = False
        self._records = LastRecords(requests, store)
        self._callbacks: tuple[Callable[[], None], ...] = ()

    @property
    def unsaved_records(self) -> int:
        """How many records could not be written before the end."""
        return self._records.unsaved

    # ── opening ──────────────────────────────────────────────────────────────────────────

    def open(self) -> None:
        """Start the actors and no worker; does nothing while the system is open.

        Raises:
            RequestRefusedError: the system has been stopped, or was created before a fork.
        """
        self._requests.check_process()
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
                logger.bind(worker=spec.id).warning("config: {}: {}", spec.id, str(warning))
        try:
            self._runtime = runtime = self._make_runtime()
            self._processes = processes = RealProcesses(
                runtime.clock,
                guarded=self._settings.guarded,
                adopts=self._settings.adopts_orphans,
                database=self._store.address,
                claims=self._store if isinstance(self._store, ClaimSource) else None,
                fingerprints=self._fingerprints,
                inherited_sockets=self._settings.inherited_sockets,
                launcher=self._settings.launcher,
                inheritance=self._settings.inheritance,
            )
            processes.sockets.open(self._workers.specs)
            self._prober.mark = processes.mark
            self._records.take_back(WRITABLE_S if self._settings.inheritance is None else 0.0)
            self._set_limits()
            remembered = self._remembered()
            if self._settings.inheritance is None:
                self._end_former_run(remembered)
            self._releases = releases = WorkItemDesk(processes.mark)
            self._interrupted = self._interrupted_releases(remembered)
            actors = self._assemble(runtime, processes, releases, remembered)
            releases.attend(actors.persistence)
            processes.logs.announce = lambda event: tell(actors.persistence, event)
            tell(actors.broker, Subscribe(self._samples, None))
            tell(actors.supervisor, StallCheckDue(runtime.clock.monotonic()))
        except BaseException:
            if self._settings.inheritance is None:  # else the former program returns, and needs everything
                self._tear_down()
            raise
        memory = RememberedTexts(remembered.meta, lambda record: tell(actors.persistence, Persist((record,))))
        self._requests.parts = RunningParts(actors, processes, memory)
        if self._settings.inheritance is None:
            self._release_left_work(actors, remembered, processes.mark)

    def _assemble(
        self, runtime: ThreadRuntime, processes: RealProcesses, releases: Receiver, remembered: Remembered
    ) -> Actors:
        inheritance = self._settings.inheritance
        return assemble(
            self._workers.specs,
            runtime=runtime,
            processes=processes,
            store=self._store,
            remembered=remembered,
            options=Options(
                run=processes.mark,
                max_concurrent_starts=self._settings.max_concurrent_starts,
                event_linger_s=EVENT_LINGER_S,
                retention=self._settings.retention,
                alerts=self._settings.alerts,
                periodic=self._settings.periodic,
                limits=self._settings.limits,
                releases=releases,
                prober=self._prober,
                declared=self._declared,
                opening=(MetaSet(CURRENT_RUN, processes.mark), self._workers.queues_record),
                patience_s=self._records.patience_s,
                left=inherited_memory(inheritance),
                unwritten=inherited_records(inheritance),
            ),
        )

    def _remembered(self) -> Remembered:
        """What the store remembers; after an upgrade it is waited for, since workers run."""
        while True:
            try:
                return self._store.load()
            except StoreUnavailableError as error:
                inheritance = self._settings.inheritance
                if inheritance is None:
                    raise
                text = "upgrade: no worker is watched until the database is available: {}"
                logger.warning(text, str(error))
                if inheritance.stop_requested(RETRY_S):
                    return Remembered()  # the workers only have to be ended

    def _set_limits(self) -> None:
        """Store the limits of queues before a worker claims a job."""
        try:
            if self._workers.queues:
                self._store.jobs.set_limits(self._settings.limits)
        except StoreError as error:
            logger.warning("store: the limits of queues are not stored yet: {}", str(error))

    def _end_former_run(self, remembered: Remembered) -> None:
        """End what a killed supervisor left behind, before anything is started beside it."""
        former = remembered.meta.get(CURRENT_RUN)
        left = [] if former is None else marked_processes(former)
        if former is not None and left:
            logger.warning("system: ending {} processes that a former run left behind", len(left))
            if not sweep(former, FORMER_RUN_S):
                raise RequestRefusedError(f"processes of a former run cannot be ended: {left}")

    def _release_left_work(self, actors: Actors, remembered: Remembered, mark: str) -> None:
        """Release what workers held that were killed together with their supervisor."""
        orders, notes = held_work.left_behind(self._workers.specs, remembered.meta, mark)
        for note in notes:
            tell(actors.persistence, Persist((note,)))
        for order in orders:
            whose = order.release.component_id
            log = logger.bind(worker=whose)
            log.info("system: {} was killed with its supervisor; releasing the work it held", whose)
            tell(self._releases, order)

    # ── an upgrade of the supervisor ─────────────────────────────────────────────────────

    def _interrupted_releases(self, remembered: Remembered) -> tuple[ReleaseOrder, ...]:
        inheritance, specs = self._settings.inheritance, self._workers.specs
        if inheritance is None or all(spec.release is None for spec in specs):
            return ()
        left = inheritance.look(PART, HandedOverActors)
        return () if left is None else held_work.interrupted(specs, remembered.meta, left.fleet.holding())

    def memory(self, *, holds: bool = False) -> HandedOverActors:
        """What only the actors know.

        Args:
            holds: whether the hand-over follows at once, so that nothing begins that could not go on.

        Raises:
            RequestRefusedError: the system stops, a worker is being removed, or the store cannot be written.
            RequestTimeoutError: an actor does not answer.
        """
        found = asked_memory(self._requests.actors, REPLY_TIMEOUT_S, holds=holds)  # ends a former hold
        if holds or self._records.are_written():
            return found
        raise RequestRefusedError("the database cannot be written now: try again when it can")

    def go_on(self) -> bool:
        """Take over the processes that the former program left; whether it was ending.

        Raises:
            RequestTimeoutError: the Supervisor does not answer.
        """
        inbox = Inbox()
        tell(self._requests.actors.supervisor, GoOn(inbox))
        answer: WentOn = inbox.get(HAND_OVER_S)
        for order in self._interrupted:
            tell(self._releases, order)
        assert self._runtime is not None
        assert self._processes is not None
        # The proxies have their orders, but may not have claimed their processes yet.
        if self._runtime.pass_through(HAND_OVER_S):
            self._processes.end_unclaimed()
        return answer.was_ending

    def freeze(self, estate: Estate) -> float:
        """Stop everything but the processes, and leave what the program that follows needs.

        The order is that of `rekindle.actors.handover.estate`. After this the system can only be replaced.

        Returns:
            When the workers were watched for the last time.

        Raises:
            RequestTimeoutError: an actor does not answer.
        """
        runtime, processes, releases = self._runtime, self._processes, self._releases
        assert runtime is not None
        assert processes is not None
        assert releases is not None
        with self._lock:
            # First: a gateway may wait for a server that does not answer, and workers are watched meanwhile.
            for callback in self._callbacks:
                attempt(callback)
            releases.settle(RELEASES_S)  # what takes longer is begun again by the next program
            at = runtime.clock.monotonic()
            runtime.stop_timers()
            if not processes.freeze(FREEZE_S):
                logger.warning("upgrade: not everything came to rest within {:g} s", FREEZE_S)
            self._prober.close(RELEASES_S)
            releases.leave()
            self._records.come_to_rest(runtime, processes, FREEZE_S)
            memory = asked_memory(self._requests.actors, HAND_OVER_S, final=True)
            leave_memory(estate, memory, self._records.left, at)
            processes.leave(estate, FREEZE_S)
        return at

    # ── stopping ─────────────────────────────────────────────────────────────────────────

    def stop(self, timeout_s: float | None) -> tuple[StopResult, ...]:
        """Stop every worker, then everything else; a second call does nothing, nor does one in a fork."""
        if os.getpid() != self._requests.process:
            return ()
        refuse_to_wait()
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
        self._records.hurries.set()
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
            steps.callback(self._records.flush)
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
            except Exception as error:  # noqa: BLE001  # the stop continues
                logger.opt(exception=error).error("system: a callback of `at_stop` raised")
        if self._callbacks:
            self._records.flush()
        self._records.keep_aside("" if self._processes is None else self._processes.mark)

    def _tear_down(self) -> None:
        self._requests.parts, self._has_ended = None, True
        if self._processes is not None:
            self._processes.close()
        if self._runtime is not None:
            self._runtime.close()
        self._processes = self._runtime = None
        self._store.close()
