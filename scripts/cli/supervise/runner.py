"""The life of `rekindle run`: start, answer signals, stop in order.

The first SIGTERM or SIGINT stops the workers within the time of their ladders, the second
hurries (SIGTERM at once), the third kills. SIGHUP reads the file again.
"""

from __future__ import annotations

import signal
import time
from collections import Counter
from contextlib import ExitStack
from queue import Empty
from typing import Literal

from loguru import logger

from rekindle.actors import RekindleError, RequestRefusedError, StopResult
from rekindle.actors.gateways.control import ControlServer
from rekindle.actors.messages import Event, StatusChanged, StoodDown
from rekindle.actors.ports import Store
from rekindle.actors.runtime.mailbox import Mailbox
from rekindle.actors.spec.stop_urgency import Urgency
from rekindle.persistence import MemoryStore
from rekindle.worker.guardian import marked_processes, sweep

from ..config import Config
from .alert_sinks import sending_alerts
from .fleet import Fleet
from .http_gateway import serve_http
from .log import EventLog
from .memory import settle
from .signals import hearing
from .state_lock import StateLock
from .store_upgrade import opened
from .subreaper import adopting
from .systemd import Notifier

Order = Literal["stop", "reload", "stand_down", "tell"]

STRAYS_S = 2.0
"""How long the end of what workers detached is waited for."""


def run(config: Config, *, ignore_state: bool = False) -> int:
    """Run the workers of a file until we are told to stop; the exit code."""
    with ExitStack() as stack:
        stack.enter_context(StateLock(config.state_dir))
        fleet = Fleet(config, store=_passing_store() if ignore_state else opened(config.database))
        # Whatever else fails from here on, nobody is left running.
        leftovers = stack.enter_context(ExitStack())
        stack.callback(fleet.stop)
        stack.callback(fleet.end_rolling)
        fleet.open()
        leftovers.callback(_end_strays, fleet.mark)
        stack.enter_context(adopting(fleet.reap_strangers))
        fleet.edges.open(fleet, config, stack)
        dashboard = serve_http(fleet, config.state_dir, config.http, stack)
        stack.enter_context(ControlServer(fleet, config.state_dir, replace_stale=True, dashboard=dashboard))
        stack.enter_context(sending_alerts(fleet, config.alerts))
        return Runner(fleet, Notifier()).run()


def _end_strays(mark: str) -> None:
    """End what workers detached from themselves: it would end with us if we were killed, too."""
    strays = marked_processes(mark)
    if strays:
        whose = ", ".join(f"{pid} of {id_}" for pid, id_ in strays)
        logger.warning("processes that workers had detached are killed: {}", whose)
        if not sweep(mark, STRAYS_S):
            logger.error("not all of them ended within {} s", STRAYS_S)


def _passing_store() -> Store:
    logger.warning("the database is ignored: nothing is known of former runs, and this one will be forgotten")
    return MemoryStore()


class Runner:
    """Waits for signals and does what they ask for."""

    def __init__(self, fleet: Fleet, notifier: Notifier) -> None:
        self._fleet = fleet
        self._notifier = notifier
        self._orders: Mailbox[Order] = Mailbox()
        self._tell_waits = False
        self._next_sign = time.monotonic()
        self._stops_asked = 0

    def run(self) -> int:
        """Start the workers and wait for the end; the exit code."""
        stop, reload = self._asked_to_stop, self._asked_to_reload
        with hearing({signal.SIGTERM: stop, signal.SIGINT: stop, signal.SIGHUP: reload}):
            self._fleet.subscribe(EventLog())
            self._fleet.subscribe(self)
            self._fleet.start()
            settle()
            self._notifier.ready(self._summary())
            logger.info("{}; ready", self._summary())
            code = self._obey()
            self._stop()
        return code

    def tell(self, message: Event) -> None:
        """Hear an event."""
        match message:
            case StoodDown():
                self._orders.put("stand_down")
            case StatusChanged() if not self._tell_waits:
                self._tell_waits = True
                self._orders.put("tell")
            case _:
                pass

    def _obey(self) -> int:
        while True:
            match self._next_order():
                case "stop":
                    return 0
                case "stand_down":
                    return 1
                case "reload":
                    self._reload()
                case "tell":
                    # First: whatever changes from here on is told again.
                    self._tell_waits = False
                    self._notifier.status(self._summary())
                case None:
                    pass
            self._show_life_when_due()

    def _next_order(self) -> Order | None:
        """What is to be done; None when the watchdog wants a sign of life before there is anything."""
        watched = self._notifier.watchdog_s is not None
        try:
            return self._orders.get(self._next_sign - time.monotonic() if watched else None)
        except Empty:
            return None

    def _show_life_when_due(self) -> None:
        period, now = self._notifier.watchdog_s, time.monotonic()
        if period is None or now < self._next_sign:
            return
        self._next_sign = now + period / 3
        try:
            self._fleet.report()
        except RekindleError as error:
            logger.warning("no sign of life for the watchdog: {}", str(error))
        else:
            self._notifier.alive()

    def _reload(self) -> None:
        self._notifier.reloading(time.monotonic_ns() // 1000)
        try:
            self._fleet.reload()
        except RequestRefusedError:
            pass  # it is in the log already
        except RekindleError as error:
            logger.error("{}", str(error))
        self._notifier.ready(self._summary())

    def _stop(self) -> None:
        self._notifier.stopping()
        logger.info("stopping")
        self._fleet.end_rolling()
        for result in self._fleet.stop():
            if not result.gone or result.killed:
                logger.warning("{}", _sentence(result))

    def _summary(self) -> str:
        try:
            shown = Counter(worker.shown for worker in self._fleet.report().workers)
        except RekindleError as error:
            return f"no answer: {error}"
        return ", ".join(f"{count} {word}" for word, count in sorted(shown.items())) or "no workers"

    def _asked_to_stop(self) -> None:
        self._stops_asked += 1
        if self._stops_asked == 1:
            self._orders.put("stop")
        else:
            self._fleet.escalate_stop(Urgency.FIRM if self._stops_asked == 2 else Urgency.KILL)

    def _asked_to_reload(self) -> None:
        self._orders.put("reload")


def _sentence(result: StopResult) -> str:
    fate = "had to be killed" if result.gone else "could not be killed"
    return f"{result.component_id} {fate}"
