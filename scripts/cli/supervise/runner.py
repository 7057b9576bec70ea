"""`rekindle run`: start the workers, handle signals, stop in order.

A run that has only tasks ends with them; the end of an essential worker or group ends any run. The
first SIGTERM or SIGINT stops the workers within the time of their stop settings, the second sends
SIGTERM at once, the third kills. SIGHUP reloads the file, SIGUSR2 opens the log files
of the workers again.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Container
from contextlib import ExitStack
from queue import Empty
from typing import Literal

from loguru import logger

from rekindle.actors import RekindleError, RequestRefusedError, StopResult
from rekindle.actors.gateways.control import ControlServer
from rekindle.actors.messages import EssentialEnded, Event, StatusChanged, StoodDown
from rekindle.actors.ports import Store
from rekindle.actors.processes.sockets.inherited_sockets import take_inherited
from rekindle.actors.processes.sockets.listening_sockets import sockets_of
from rekindle.actors.processes.spawn.descriptor_limit import raise_limit, room_for_workers
from rekindle.actors.processes.strays import children_of, end_descendants, living_descendants
from rekindle.actors.runtime.mailbox import Mailbox
from rekindle.actors.spec.policies.stop_policy import Urgency
from rekindle.persistence import MemoryStore
from rekindle.worker.guardian import marked_processes, sweep

from ..config import Config
from .fleet import Fleet
from .gateways import send_alerts, serve_http
from .log import EventLog
from .platform.memory import settle
from .platform.signals import handle_signals
from .platform.state_lock import StateLock
from .platform.subreaper import adopt_orphans
from .platform.systemd import Notifier
from .store_upgrade import open_upgraded
from .task_results import TaskResults

Order = Literal["stop", "reload", "stand_down", "end", "show_status", "check_tasks"]

STRAYS_S = 2.0
"""How long to wait until killed stray processes have ended."""


def run(config: Config, *, ignore_state: bool = False) -> int:
    """Run the workers of a file until a signal or another supervisor ends it; returns the exit code."""
    raise_limit()
    with ExitStack() as stack:
        stack.enter_context(StateLock(config.state_dir))
        where = config.database, config.state_dir, config.worker_database
        store = None if ignore_state else open_upgraded(*where)
        inherited = take_inherited(sockets_of(config.specs()))
        fleet = Fleet(config, store=store or _temporary_store(), inherited=inherited)
        # From here on no worker is left running, even if a later step fails.
        leftovers = stack.enter_context(ExitStack())
        # Children that a shell had before it became this program are not ours to end.
        spared = frozenset(children_of(os.getpid()))
        stack.callback(fleet.stop)
        stack.callback(fleet.end_rolling)
        fleet.open()
        leftovers.callback(_end_strays, fleet.mark, spared)
        stack.enter_context(adopt_orphans(fleet.reap_strangers))
        fleet.event_gateways.open(fleet, config, stack)
        dashboard = serve_http(fleet, config.state_dir, config.http, stack)
        stack.enter_context(ControlServer(fleet, config.state_dir, replace_stale=True, dashboard=dashboard))
        send_alerts(fleet, config.alerts, stack)
        _say_room(len(config.specs()))
        return Runner(fleet, Notifier()).run()


def _say_room(declared: int) -> None:
    room = room_for_workers()
    if room is not None:
        level = "WARNING" if declared > room else "INFO"
        logger.log(level, "supervisor: descriptors for {:,} workers; {:,} are declared", room, declared)


def _end_strays(mark: str, spared: Container[int]) -> None:
    """Kill processes that workers detached; they would also end if the supervisor were killed."""
    strays = dict.fromkeys(living_descendants(spared), "") | dict(marked_processes(mark))
    if strays:
        listed = ", ".join(f"{pid} of {id_}" if id_ else str(pid) for pid, id_ in strays.items())
        logger.warning("supervisor: killing processes that workers detached: {}", listed)
        if end_descendants(spared, STRAYS_S) or not sweep(mark, STRAYS_S):
            logger.error("supervisor: detached processes are still alive after {} s", STRAYS_S)


def _temporary_store() -> Store:
    logger.warning("store: running without the database; earlier state is unknown and nothing is persisted")
    return MemoryStore()


class Runner:
    """Starts the workers, then acts on signals and events until the end."""

    def __init__(self, fleet: Fleet, notifier: Notifier) -> None:
        self._fleet = fleet
        self._notifier = notifier
        self._orders: Mailbox[Order] = Mailbox()
        self._status_queued = False
        self._next_keepalive = time.monotonic()
        self._stop_signals = 0
        self._results = TaskResults()
        self._essential_code = 0

    def run(self) -> int:
        """Start the workers and wait for the end; returns the exit code."""
        stop, reload = self._on_stop_signal, self._on_reload_signal
        reopen = self._fleet.reopen_logs
        handlers: dict[int, Callable[[], None]] = {
            signal.SIGTERM: stop,
            signal.SIGINT: stop,
            signal.SIGHUP: reload,
            signal.SIGUSR2: reopen,
        }
        with handle_signals(handlers):
            self._fleet.subscribe(EventLog())
            self._fleet.subscribe(self)
            self._fleet.start()
            settle()
            self._notifier.ready(self._summary())
            logger.info("supervisor: ready, {}", self._summary())
            code = self._process_orders()
            self._stop()
        return code or (1 if self._fleet.unsaved_records else 0)

    def tell(self, message: Event) -> None:
        """Receive an event."""
        if self._results.take(message):
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
            code = self._results.exit_code(self._fleet.report().workers)
        except RekindleError:
            return None
        if code is not None:
            logger.info("supervisor: all tasks have ended")
        return code

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
                logger.warning("{}", _stop_warning(result))

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

    def _on_reload_signal(self) -> None:
        self._orders.put("reload")


def _stop_warning(result: StopResult) -> str:
    end = "had to be killed" if result.gone else "could not be killed"
    return f"{result.component_id} {end}"
