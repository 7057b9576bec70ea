"""Requests to the actors of a running system, and the wait for their replies."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from ..errors import PausedError, RequestRefusedError
from ..messages import (
    AcknowledgeAlert,
    Done,
    HostCommand,
    Refused,
    ReportAlerts,
    StatusReport,
    WorkersChanged,
    WorkersStopped,
)
from ..messages.argument_checks import wrong_argument
from ..ports import Receiver
from ..processes.process_table import RealProcesses
from ..runtime.lanes import is_on_lane
from ..runtime.resilient_actor import tell
from .assembly import Actors
from .declared_workers import DeclaredWorkers
from .inboxes import Inbox
from .remembered_texts import RememberedTexts

REPLY_TIMEOUT_S = 5.0
"""How long a request may take that waits only for actors."""

M = TypeVar("M", HostCommand, AcknowledgeAlert | ReportAlerts)

Reply = Done | WorkersStopped | WorkersChanged | StatusReport


class RunningParts(msgspec.Struct, frozen=True):
    """What exists only between the opening of a system and its end."""

    actors: Actors
    processes: RealProcesses
    memory: RememberedTexts


class Requests:
    """Sends requests to the Supervisor and waits for replies, from any thread."""

    def __init__(self, workers: DeclaredWorkers) -> None:
        self.parts: RunningParts | None = None
        """None while the system is not running."""
        self.process = os.getpid()
        """The process that created the system and opened its store."""
        self._workers = workers

    @property
    def running(self) -> RunningParts:
        """The parts of the running system.

        Raises:
            RequestRefusedError: the system is not running, or runs in another process.
        """
        self.check_process()
        if self.parts is None:
            raise RequestRefusedError("the system is not running: call `open` or `start` first")
        return self.parts

    def check_process(self) -> None:
        """Refuse a fork of the process that created the system: it has neither its threads nor its store.

        Raises:
            RequestRefusedError: this is such a fork.
        """
        if os.getpid() != self.process:
            raise RequestRefusedError(
                f"the system was created by process {self.process}, before a fork:"
                " create it, and open its store, in the process that starts it"
            )

    @property
    def actors(self) -> Actors:
        """The actors of the running system.

        Raises:
            RequestRefusedError: the system is not running.
        """
        return self.running.actors

    def supervisor(
        self, request: Callable[[Receiver], HostCommand], timeout_s: float = REPLY_TIMEOUT_S
    ) -> Reply:
        """Send the Supervisor a request that names an inbox, and return what arrives there.

        Raises:
            TypeError: an argument has the wrong type.
            UnknownWorkerError: the request names a worker that does not exist.
            PausedError: a pause prevents what the request asks for.
            RequestRefusedError: the Supervisor declined, or has ended.
            RequestTimeoutError: no reply arrived in time.
        """
        inbox = Inbox()
        message = _checked(request(inbox))
        if not tell(self.actors.supervisor, message):
            raise RequestRefusedError("the supervisor has ended")
        reply: Reply | Refused = inbox.get(timeout_s)
        if isinstance(reply, Refused):
            if reply.unknown is not None:
                raise self._workers.unknown(reply.unknown)
            if reply.paused is not None:
                raise PausedError(reply.reason, reply.paused)
            raise RequestRefusedError(reply.reason)
        return reply

    def alert_desk(self, request: Callable[[Receiver], AcknowledgeAlert | ReportAlerts]) -> Any:
        """Send the AlertDesk a request and return its reply; None in a system without alerts."""
        inbox = Inbox()
        message = _checked(request(inbox))
        if not tell(self.actors.alerts, message):
            return None
        return inbox.get(REPLY_TIMEOUT_S)


def _checked(message: M) -> M:
    wrong = wrong_argument(message)
    if wrong is not None:
        raise TypeError(wrong)
    refuse_to_wait()
    return message


def refuse_to_wait() -> None:
    """Refuse a call that would wait for the actors on the thread that they run on.

    Raises:
        RequestRefusedError: the caller is a receiver of events, in its `tell`.
    """
    if is_on_lane():
        raise RequestRefusedError(
            "a receiver of events cannot wait for the system in its `tell`, which runs on a thread of the"
            " system: call it in another thread, or tell `system.supervisor` a message"
        )
