"""The order of an upgrade: what the check asks, what is handed over, and when the other program is executed.

`rekindle.actors.handover.estate` says what must hold at every instant.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from loguru import logger

from rekindle import __version__
from rekindle.actors import RekindleError, RequestRefusedError
from rekindle.actors.gateways.control import ControlServer
from rekindle.actors.handover import FORMAT, Estate, HandOver
from rekindle.actors.handover.document import encode
from rekindle.actors.handover.sealed_file import sealed
from rekindle.actors.messages import UpgradeFailed
from rekindle.actors.processes.run_tool import run_tool
from rekindle.actors.processes.spawn.launcher import Launcher
from rekindle.persistence.store import SqlStore

from ..fleet import SupervisedFleet
from ..platform.signals import Handling
from ..platform.state_lock import StateLock
from .dry_start import ANSWER
from .parts import leave_examples
from .program import CHECK, DOCUMENT, command_line, execute
from .runner_state import ALERTS, RUNNER, PendingOrders, RunnerState, StoreLock

if TYPE_CHECKING:
    from rekindle.actors.gateways.http import HttpServer

CHECK_S = 30.0
"""How long the dry start of another installation may take."""

SETTLE_S = 5.0
"""How long the starts of workers that are under way may take: the thread that makes them executes the other
program."""


class CheckedUpgrade(msgspec.Struct, frozen=True):
    """An upgrade whose check has passed."""

    argv: tuple[str, ...]
    version: str


class UpgradeDesk:
    """Hands this process over. `request` is for any thread, `hand_over` for that of the runner."""

    def __init__(
        self,
        fleet: SupervisedFleet,
        launcher: Launcher,
        store: object,
        lock: StateLock,
        *,
        number: int,
        begin: Callable[[CheckedUpgrade], None],
    ) -> None:
        self._fleet = fleet
        self._launcher = launcher
        self._store = store
        self._lock = lock
        self.number = number
        """How often this process was replaced, or should have been."""
        self.failed: str | None = None
        """Why the latest upgrade failed, if it did."""
        self.blind_ms: int | None = None
        self.control: ControlServer | None = None
        self.http: HttpServer | None = None
        self.signals: Handling | None = None
        self.spared: tuple[int, ...] = ()
        self.task_codes: Callable[[], dict[str, int]] = dict
        self.pending: Callable[[], PendingOrders] = PendingOrders
        self._begin = begin
        self._checking = threading.Lock()

    # ── the check ────────────────────────────────────────────────────────────────────────

    def request(self, python: str | None, *, only_check: bool) -> Mapping[str, object]:
        """Check another installation and begin the upgrade, unless only the check is wanted.

        Raises:
            RequestRefusedError: the upgrade is not possible; nothing was changed.
        """
        if not self._checking.acquire(blocking=False):
            raise RequestRefusedError("an upgrade is being checked or is under way already")
        try:
            wanted = self.check(python)
        except BaseException:
            self._checking.release()
            raise
        if only_check:
            self._checking.release()
        else:
            self._begin(wanted)
        return {"from": __version__, "to": wanted.version, "number": self.number, "pid": os.getpid()}

    def check(self, python: str | None) -> CheckedUpgrade:
        """Make a dry start of the other installation.

        Raises:
            RequestRefusedError: it could not take over; the text says why.
        """
        if not isinstance(self._store, SqlStore):
            raise RequestRefusedError(
                "a supervisor that runs with --ignore-state has its history in memory only, which an upgrade"
                " would lose"
            )
        argv = command_line(_interpreter(python))
        if (obstacle := self._fleet.obstacle()) is not None:
            raise RequestRefusedError(obstacle)
        self._await_starts()
        estate = Estate()
        self._fleet.leave_memory(estate)
        estate.leave(RUNNER, self._runner_state(PendingOrders()))
        leave_examples(estate, alerts=self._fleet.event_gateways.example_of_alerts())
        version = _dry_start(argv, self._document(estate))
        self._fleet.leave_memory(Estate())  # that took a second: it must still be possible
        return CheckedUpgrade(argv, version)

    def latest(self) -> Mapping[str, object]:
        """How often this process was upgraded, and what became of the latest attempt."""
        return {
            "version": __version__,
            "number": self.number,
            "failed": self.failed,
            "blind_ms": self.blind_ms,
            "pid": os.getpid(),
        }

    # ── the hand-over ────────────────────────────────────────────────────────────────────

    def hand_over(self, wanted: CheckedUpgrade) -> None:
        """Freeze, and execute the other program; this returns only if that is not possible at this moment."""
        try:
            self._await_starts()
            self._fleet.leave_memory(Estate(), holds=True)
        except RekindleError as error:
            self._call_off(str(error))
            return
        logger.info("upgrade: handing over to {} ({})", wanted.version, wanted.argv[0])
        estate = Estate()
        if self.http is not None:
            estate.leave("http", None, socket=self.http.leave())
        if self.control is not None:
            estate.leave("control", None, socket=self.control.leave())
        estate.leave("state_lock", None, lock=self._lock.descriptor)
        if isinstance(self._store, SqlStore) and self._store.lock is not None:
            if self._store.has_file:
                estate.leave("store_lock", StoreLock(), lock=self._store.lock)
            else:
                estate.leave("store_lock", StoreLock(session=self._store.lock))
        at = self._fleet.hand_over(estate)
        estate.leave(ALERTS, self._fleet.event_gateways.leave_alerts())
        if self.signals is not None:
            self.signals.end()
            estate.leave("signals", None, **self.signals.pipe._asdict())
        estate.leave(RUNNER, self._runner_state(self.pending()))
        document = self._document(estate, at)
        self._launcher.ask(lambda: _execute(wanted.argv, document))

    def _await_starts(self) -> None:
        if not self._launcher.settle(SETTLE_S):
            raise RequestRefusedError(
                f"the start of a worker takes more than {SETTLE_S:g} s: try again when it has ended"
            )

    def _call_off(self, reason: str) -> None:
        """Something began after the check: nothing has changed, and another upgrade may be asked for."""
        logger.error("upgrade: called off: {}", reason)
        with suppress(RekindleError):
            self._fleet.leave_memory(Estate())  # rollouts may begin again
        self.number, self.failed, self.blind_ms = self.number + 1, reason, 0
        self._fleet.announce(UpgradeFailed(reason, __version__, 0))
        self._checking.release()

    def _runner_state(self, pending: PendingOrders) -> RunnerState:
        return RunnerState(
            spared=self.spared,
            task_codes=self.task_codes(),
            counts=self._fleet.counts(),
            pending=pending,
        )

    def _document(self, estate: Estate, at: float | None = None) -> HandOver:
        return HandOver(
            format=FORMAT,
            version=__version__,
            number=self.number + 1,
            at=time.monotonic() if at is None else at,
            back=command_line(),
            parts=estate.parts,
        )


def _execute(argv: tuple[str, ...], document: HandOver) -> None:
    try:
        execute(argv, document)
    except OSError as error:
        execute(document.back, document, f"{argv[0]} cannot be executed: {error.strerror}")


def _interpreter(python: str | None) -> str | None:
    """The path of another interpreter.

    Raises:
        RequestRefusedError: it is not a program.
    """
    if python is None:
        return None
    path = Path(python)
    if not path.is_absolute():
        raise RequestRefusedError(f"{python} is not an absolute path of a Python interpreter")
    if not path.is_file() or not os.access(path, os.X_OK):
        raise RequestRefusedError(f"{python} is not a program that this user can execute")
    return python


def _dry_start(argv: tuple[str, ...], document: HandOver) -> str:
    """Have the other installation say whether it could take over; its version.

    Raises:
        RequestRefusedError: it could not.
    """
    file = sealed(encode(document))
    environment = {**os.environ, DOCUMENT: "0", CHECK: "1"}
    try:
        ran = run_tool(argv, cwd=None, env=environment, timeout_s=CHECK_S, given=file)
    except OSError as error:
        raise RequestRefusedError(f"{argv[0]} cannot be executed: {error.strerror}") from None
    finally:
        os.close(file)
    if ran.exit is None:
        raise RequestRefusedError(f"{argv[0]} did not answer the check within {CHECK_S:g} s")
    lines = ran.output.decode(errors="replace").strip().splitlines()
    found = next((line.removeprefix(ANSWER) for line in lines if line.startswith(ANSWER)), None)
    if found is None:
        last = lines[-1] if lines else str(ran.exit)
        raise RequestRefusedError(f"{argv[0]} has no Rekindle that can take over: {last}")
    answer = json.loads(found)
    if answer["problem"] is not None:
        raise RequestRefusedError(f"{answer['version']} cannot take over: {answer['problem']}")
    return str(answer["version"])
