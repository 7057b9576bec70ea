"""What the former program of this process left to `rekindle run`, or nothing at an ordinary start."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from typing import Any

from rekindle import __version__
from rekindle.actors.handover import Inheritance
from rekindle.actors.handover.estate import set_inheritable
from rekindle.actors.messages import SupervisorUpgraded, UpgradeFailed
from rekindle.actors.processes.spawn.launcher import Launcher

from ...config import Config
from ..fleet import SupervisedFleet
from ..platform.signals import HELD, MOST_AT_ONCE, SignalPipe, set_handlers
from .program import go_back
from .runner_state import ALERTS, RUNNER, RunnerState, StoreLock
from .upgrade_desk import UpgradeDesk

READY_S = 60.0
"""How long this program may take to become ready, before the former one returns."""


class OwnEstate:
    """The descriptors and the state for the process itself; the actors and processes take theirs."""

    def __init__(
        self, inheritance: Inheritance | None, failed: str | None = None, file: Config | None = None
    ) -> None:
        self.inheritance = inheritance
        self.failed = failed
        """Why the program that should have followed gave way to this one, if it did."""
        self._file = file
        """The file, without what was scaled under the former program."""
        self._blind_ms = 0
        self._ready = threading.Event()
        self._is_current = True
        """Whether the document describes the processes as they are."""
        self._choosing = threading.Lock()
        """Held by the one of two threads that decides: this program takes over, or the former one returns."""
        taken = None if inheritance is None else inheritance.take(RUNNER, RunnerState)
        self.runner = RunnerState() if taken is None else taken[0]
        alerts = None if inheritance is None else inheritance.take(ALERTS, dict[str, Any])
        self.alerts = {} if alerts is None else alerts[0]
        """The messages about alerts that the former program did not send."""
        self._descriptors: dict[str, dict[str, int]] = {}
        if inheritance is not None:
            set_inheritable(inheritance.document, inheritable=False)
            inheritance.stop_requested = self.stop_requested
            for name in ("state_lock", "control", "http", "signals", "sockets"):
                found = inheritance.take(name, type(None))
                self._descriptors[name] = {} if found is None else found[1]
        store = None if inheritance is None else inheritance.take("store_lock", StoreLock)
        self.store_lock = None if store is None else store[1].get("lock", store[0].session)
        """What holds the right to the database: a descriptor, or the number of a session."""

    @property
    def number(self) -> int:
        """How often this process was replaced, or should have been."""
        return 0 if self.inheritance is None else self.inheritance.document.number

    @property
    def signals(self) -> SignalPipe | None:
        """The pipe with the signals that were not handled."""
        found = self._descriptors.get("signals")
        return SignalPipe(**found) if found else None

    def catch_signals(self) -> None:
        """Have signals written to the pipe from now on, before any thread is started."""
        if self.signals is not None:
            set_handlers(HELD, self.signals.wakeup)

    def stop_requested(self, within_s: float) -> bool:
        """Wait so long; whether a signal asks for the stop, which stays in the pipe until it is handled."""
        pipe = self.signals
        if pipe is None or not select.select([pipe.received], [], [], within_s)[0]:
            return False
        numbers = os.read(pipe.received, MOST_AT_ONCE)
        os.write(pipe.wakeup, numbers)
        if signal.SIGTERM in numbers or signal.SIGINT in numbers:
            return True
        time.sleep(within_s)
        return False

    @property
    def sockets(self) -> dict[str, int] | None:
        """The listening sockets of the workers by name; None at an ordinary start."""
        return self._descriptors.get("sockets")

    def descriptor(self, part: str, name: str) -> int | None:
        """A descriptor of a part; None if there is none."""
        return self._descriptors.get(part, {}).get(name)

    def watch_start(self, launcher: Launcher) -> None:
        """Give way to the former program if this one is not ready in time."""
        if self.inheritance is not None:
            name = "rekindle-upgrade"
            threading.Thread(target=self._watch, args=(launcher,), name=name, daemon=True).start()

    def _watch(self, launcher: Launcher) -> None:
        if not self._ready.wait(READY_S):
            self.go_back(launcher, f"it was not ready within {READY_S:g} s")

    def go_back(self, launcher: Launcher, reason: str) -> None:
        """Execute the former program again; returns if there is none, or this one became ready."""
        if self.inheritance is None or self.failed is not None or not self._is_current:
            return
        launcher.ask(lambda: self._go_back(reason))

    def _go_back(self, reason: str) -> None:
        with self._choosing:
            if self._is_current and self.inheritance is not None:
                go_back(self.inheritance.document, reason)

    def go_on(self, fleet: SupervisedFleet) -> None:
        """Take over the processes, if any were left; from then on the document is out of date."""
        if self.inheritance is not None:
            with self._choosing:
                self._is_current = False
            if self._file is not None:
                fleet.loaded_as(self._file)
            fleet.go_on()
            self._blind_ms = round((time.monotonic() - self.inheritance.document.at) * 1000)

    def become_ready(self, fleet: SupervisedFleet, desk: UpgradeDesk | None) -> None:
        """Everything that was left is in use: say so."""
        assert self.inheritance is not None
        self._ready.set()
        document, blind_ms = self.inheritance.document, self._blind_ms
        if desk is not None:
            desk.failed, desk.blind_ms = self.failed, blind_ms
        if self.failed is None:
            fleet.announce(SupervisorUpgraded(document.version, __version__, blind_ms, document.number))
        else:
            fleet.announce(UpgradeFailed(self.failed, __version__, blind_ms))


NOTHING_LEFT = OwnEstate(None)
