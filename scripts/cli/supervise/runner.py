"""`rekindle run`: start the workers, handle signals, stop in order.

A run that has only tasks ends with them; the end of an essential worker or group ends any run. The
first SIGTERM or SIGINT stops the workers within the time of their stop settings, the second sends
SIGTERM at once, the third kills. SIGHUP reloads the file, SIGUSR1 upgrades the supervisor, SIGUSR2 opens
the log files of the workers again.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from functools import partial
from queue import Empty

from loguru import logger

from rekindle.actors import RekindleError, RequestRefusedError, StopResult
from rekindle.actors.gateways.control import ControlServer
from rekindle.actors.gateways.operator import Operator
from rekindle.actors.messages import EssentialEnded, Event, StatusChanged, StoodDown
from rekindle.actors.ports import Store
from rekindle.actors.processes.sockets.inherited_sockets import take_inherited
from rekindle.actors.processes.sockets.listening_sockets import sockets_of
from rekindle.actors.processes.spawn.descriptor_limit import raise_limit, room_for_workers
from rekindle.actors.processes.spawn.launcher import Launcher
from rekindle.actors.processes.strays import children_of
from rekindle.actors.runtime.mailbox import Mailbox
from rekindle.actors.spec.policies.stop_policy import Urgency
from rekindle.persistence import MemoryStore

from ..config import Config
from .fleet import SupervisedFleet
from .gateways import serve_http
from .log import EventLogger
from .membership import fleet_class, join_cluster, operator_of, with_shared_jobs
from .platform.detached import end_strays
from .platform.memory import settle_soon
from .platform.signals import at_once, handle_signals
from .platform.state_lock import StateLock
from .platform.subreaper import adopt_orphans
from .platform.systemd import Notifier
from .store_upgrade import open_patiently
from .task_results import TaskResults
from .upgrade.left import NOTHING_LEFT, OwnEstate
from .upgrade.runner_state import PendingOrders, Word
from .upgrade.upgrade_desk import CheckedUpgrade, UpgradeDesk

Order = Word | CheckedUpgrade

FIRST_STARTS_S = 1.0
"""How long requests wait at most for the first processes to be started."""


def run(config: Config, *, ignore_state: bool = False, left: OwnEstate = NOTHING_LEFT) -> int:
    """Run the workers of a file until a signal or another supervisor ends it; returns the exit code.

    The first thread of the process starts the workers, since it does not end with an upgrade: the kernel
    takes the end of the thread that started a process for the end of its parent. Another does the rest.
    """
    raise_limit()
    launcher = Launcher(own_thread=False)
    outcome: Future[int] = Future()

    def work() -> None:
        try:
            outcome.set_result(_run(config, launcher, left, ignore_state=ignore_state))
        except BaseException as error:  # noqa: BLE001  # raised in the first thread
            outcome.set_exception(error)
        finally:
            launcher.close(0.0)

    threading.Thread(target=work, name="rekindle-run", daemon=True).start()
    launcher.work()
    return outcome.result()


def _run(config: Config, launcher: Launcher, left: OwnEstate, *, ignore_state: bool) -> int:
    with ExitStack() as stack:
        left.watch_start(launcher)
        try:
            runner = _prepared(config, launcher, left, stack, ignore_state=ignore_state)
        except BaseException as error:
            left.go_back(launcher, str(error) or type(error).__name__)
            raise
        return runner.run(left)


def _prepared(
    config: Config, launcher: Launcher, left: OwnEstate, stack: ExitStack, *, ignore_state: bool
) -> Runner:
    """Everything but the workers, until the stack is left."""
    lock = stack.enter_context(StateLock(config.state_dir, left.descriptor("state_lock", "lock")))
    stops = None if left.inheritance is None else left.stop_requested
    opened = partial(open_patiently, config, left.store_lock, stops)
    store, jobs = with_shared_jobs(config, _temporary_store() if ignore_state else opened())
    fleet = fleet_class(config)(
        config,
        store=store,
        launcher=launcher,
        inheritance=left.inheritance,
        inherited=take_inherited(sockets_of(config.templates)) if left.sockets is None else left.sockets,
    )
    # From here on no worker is left running, even if a later step fails.
    leftovers = stack.enter_context(ExitStack())
    # Children that a shell had before it became this program are not ours to end.
    spared = left.runner.spared if left.inheritance else tuple(children_of(os.getpid()))
    stack.callback(fleet.stop)
    stack.callback(fleet.end_rolling)
    fleet.open()
    leftovers.callback(end_strays, fleet.mark, frozenset(spared))
    stack.enter_context(adopt_orphans(fleet.reap_strangers))
    fleet.event_gateways.open(fleet, config, stack)
    runner = Runner(fleet, Notifier(), launcher)
    runner.lock, runner.results.end_the_run = lock, config.cluster is None
    runner.lacks_database = isinstance(store, MemoryStore) and not ignore_state
    desk = UpgradeDesk(fleet, launcher, store, lock, number=left.number, begin=runner.upgrade)
    desk.spared, runner.desk, fleet.upgrades = spared, desk, desk
    runner.listen()
    fleet.event_gateways.send_alerts(fleet, config.alerts, stack, left.alerts)
    operator = operator_of(fleet, config)
    _serve(config, fleet, operator, desk, left, stack)
    join_cluster(fleet, config, store, jobs, operator)
    if left.inheritance is None:
        _say_room(len(config.specs()))
    return runner


def _serve(
    config: Config,
    fleet: SupervisedFleet,
    operator: Operator,
    desk: UpgradeDesk,
    left: OwnEstate,
    stack: ExitStack,
) -> None:
    """Open the sockets for requests, and take over the workers that were left, if any were.

    In this order: the former program cannot return once the workers are taken over, so nothing that could
    fail comes after that. Requests wait until it is done. Without workers that were left, requests over the
    control socket wait for `Runner.run`, but not on a node of a cluster.
    """
    held = left.inheritance is not None
    socket = left.descriptor("http", "socket")
    desk.http = serve_http(operator, config.state_dir, config.http, stack, socket, held=held)
    desk.control = ControlServer(
        operator,
        config.state_dir,
        replace_stale=True,
        dashboard=None if desk.http is None else desk.http.url,
        inherited=left.descriptor("control", "socket"),
        held=held,
    )
    if held or config.cluster is not None:  # a node waits for its database, and answers meanwhile
        desk.control.start()
    else:
        desk.control.bind()
    stack.callback(desk.control.stop)
    left.go_on(fleet)
    desk.control.open()
    if desk.http is not None:
        desk.http.open()
    elif socket is not None:
        os.close(socket)  # the file no longer has a dashboard


def _say_room(declared: int) -> None:
    room = room_for_workers()
    if room is not None:
        level = "WARNING" if declared > room else "INFO"
        be = "is" if declared == 1 else "are"
        logger.log(level, "supervisor: descriptors for {:,} workers; {:,} {} declared", room, declared, be)


def _temporary_store() -> Store:
    logger.warning("store: running without the database; earlier state is unknown and nothing is persisted")
    return MemoryStore()


class Runner:
    """Starts the workers, then acts on signals and events until the end."""

    def __init__(self, fleet: SupervisedFleet, notifier: Notifier, launcher: Launcher | None = None) -> None:
        self._fleet = fleet
        self._launcher = launcher
        self._on_main = at_once if launcher is None else launcher.ask
        self.desk: UpgradeDesk | None = None
        """Hands this process over to another program."""
        self.lock: StateLock | None = None
        """Where the number of lost records is left for `rekindle shutdown`."""
        self.lacks_database = False
        """Whether it was to stop before the database was available, after an upgrade."""
        self._notifier = notifier
        self._orders: Mailbox[Order] = Mailbox()
        self._status_queued = False
        self._next_keepalive = time.monotonic()
        self._stop_signals = 0
        self.results = TaskResults()
        self._essential_code = 0

    def run(self, left: OwnEstate = NOTHING_LEFT) -> int:
        """Start the workers, or continue with those that were left, and wait for the end; the exit code."""
        stop, reload = self._on_stop_signal, self._on_reload_signal
        reopen = self._fleet.reopen_logs
        handlers: dict[int, Callable[[], None]] = {
            signal.SIGTERM: stop,
            signal.SIGINT: stop,
            signal.SIGHUP: reload,
            signal.SIGUSR1: self._on_upgrade_signal,
            signal.SIGUSR2: reopen,
        }
        self._resume(left.runner.pending)
        with handle_signals(handlers, self._on_main, left.signals) as signals:
            self.results.restore(left.runner.task_codes)
            if self.desk is not None:
                self.desk.signals, self.desk.pending = signals, self._pending
                self.desk.task_codes = self.results.codes
            if left.inheritance is None:
                self._start()
            else:
                left.become_ready(self._fleet, self.desk)
            settle_soon()
            self._notifier.ready(self._summary(), again=left.inheritance is not None)
            logger.info("supervisor: ready, {}", self._summary())
            code = self._process_orders()
            self._stop()
        unsaved = self._fleet.unsaved_records
        if unsaved and self.lock is not None:
            self.lock.note_unsaved(unsaved)
        return code or (1 if unsaved or self.lacks_database else 0)

    def _start(self) -> None:
        """Start the workers, then answer requests: the code for that takes a seventh of the start to load."""
        self._fleet.start()
        if self._launcher is not None:
            self._launcher.settle(FIRST_STARTS_S)
        if self.desk is not None and self.desk.control is not None:
            self.desk.control.start()

    def _pending(self) -> PendingOrders:
        """The orders that came after the one to hand over."""
        words: list[Word] = []
        while self._orders:
            order = self._orders.get(0.0)
            if not isinstance(order, CheckedUpgrade):
                words.append(order)
        return PendingOrders(
            words=tuple(words), stop_signals=self._stop_signals, essential_code=self._essential_code
        )

    def _resume(self, pending: PendingOrders) -> None:
        """Follow the orders that the former program of this process had no time for."""
        self._stop_signals += pending.stop_signals
        self._essential_code = self._essential_code or pending.essential_code
        for word in pending.words:
            self._orders.put(word)

    def listen(self) -> None:
        """Log events and act on them from now on."""
        self._fleet.subscribe(EventLogger())
        self._fleet.subscribe(self)

    def tell(self, message: Event) -> None:
        """Receive an event."""
        if self.results.take(message):
            self._orders.put("check_tasks")
        match message:
            case StoodDown():
                self._orders.put("stand_down")
            case EssentialEnded(exit_code=code):
                self._essential_code = code
                self._orders.put("end")
            case StatusChanged() if not self._status_queued:
                self._status_queued = True
                self._orders.put("show_status")
            case _:
                pass

    def _process_orders(self) -> int:
        while True:
            match self._next_order():
                case "stop":
                    return 0
                case "stand_down":
                    return 1
                case "end":
                    return self._essential_code
                case "reload":
                    self._reload()
                    self._orders.put("check_tasks")
                case CheckedUpgrade() as wanted:
                    self._hand_over(wanted)
                case "check_tasks":
                    code = self._task_code()
                    if code is not None:
                        return code
                case "show_status":
                    # Clear it first, so that a later change queues the next update.
                    self._status_queued = False
                    self._notifier.status(self._summary())
                case None:
                    pass
            self._send_keepalive_if_due()

    def _next_order(self) -> Order | None:
        """The next order; None if the watchdog's keep-alive is due before one arrives."""
        watched = self._notifier.watchdog_s is not None
        try:
            return self._orders.get(self._next_keepalive - time.monotonic() if watched else None)
        except Empty:
            return None

    def _send_keepalive_if_due(self) -> None:
        period, now = self._notifier.watchdog_s, time.monotonic()
        if period is None or now < self._next_keepalive:
            return
        self._next_keepalive = now + period / 3
        try:
            self._fleet.check_answers()
        except RekindleError as error:
            logger.warning("systemd: watchdog keep-alive skipped: {}", str(error))
        else:
            self._notifier.alive()

    def _task_code(self) -> int | None:
        """The exit code if all workers are tasks and have ended; None if there is something left to do."""
        try:
            code = self.results.exit_code(self._fleet.report().workers)
        except RekindleError:
            return None
        if code is not None:
            logger.info("supervisor: all tasks have ended")
        return code

    def upgrade(self, wanted: CheckedUpgrade) -> None:
        """Hand this process over to a program whose check has passed, as soon as possible."""
        self._orders.put(wanted)

    def _check_and_upgrade(self) -> None:
        try:
            self._fleet.upgrade(None)
        except RekindleError as error:
            logger.error("upgrade: refused: {}", str(error))

    def _hand_over(self, wanted: CheckedUpgrade) -> None:
        assert self.desk is not None
        self._notifier.upgrading(time.monotonic_ns() // 1000)
        self.desk.hand_over(wanted)
        self._notifier.ready(self._summary(), again=True)  # it was called off

    def _reload(self) -> None:
        self._notifier.reloading(time.monotonic_ns() // 1000)
        try:
            self._fleet.reload()
        except RequestRefusedError:
            pass  # already logged
        except RekindleError as error:
            logger.error("config: reload failed: {}", str(error))
        self._notifier.ready(self._summary())

    def _stop(self) -> None:
        self._notifier.stopping()
        logger.info("supervisor: stopping")
        self._fleet.end_rolling()
        for result in self._fleet.stop():
            if not result.gone or result.killed:
                logger.bind(worker=result.component_id).warning("supervisor: {}", _stop_warning(result))

    def _summary(self) -> str:
        try:
            shown = Counter(worker.shown for worker in self._fleet.report().workers)
        except RekindleError as error:
            return f"no answer: {error}"
        return ", ".join(f"{count} {word}" for word, count in sorted(shown.items())) or "no workers"

    def _on_stop_signal(self) -> None:
        self._stop_signals += 1
        if self._stop_signals == 1:
            self._orders.put("stop")
        else:
            self._fleet.escalate_stop(Urgency.FIRM if self._stop_signals == 2 else Urgency.KILL)

    def _on_upgrade_signal(self) -> None:
        # Beside the signals and orders: a dry start takes a second.
        threading.Thread(target=self._check_and_upgrade, name="rekindle-upgrade", daemon=True).start()

    def _on_reload_signal(self) -> None:
        self._orders.put("reload")


def _stop_warning(result: StopResult) -> str:
    end = "had to be killed" if result.gone else "could not be killed"
    return f"{result.component_id} {end}"
