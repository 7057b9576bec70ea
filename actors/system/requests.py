"""Requests to the actors of a running system, and the wait for their replies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ..errors import PausedError, RequestRefusedError
from ..messages import Done, Refused, StatusReport, WorkersChanged, WorkersStopped
from ..ports import Receiver
from ..processes.process_table import RealProcesses
from ..runtime.resilient_actor import tell
from .assembly import Actors
from .declared_workers import DeclaredWorkers
from .gateway_memory import GatewayMemory
from .inboxes import Inbox

REPLY_TIMEOUT_S = 5.0
"""How long a request may take that waits only for actors."""

Reply = Done | WorkersStopped | WorkersChanged | StatusReport


class RunningParts(msgspec.Struct, frozen=True):
    """What exists only between the opening of a system and its end."""

    actors: Actors
    processes: RealProcesses
    memory: GatewayMemory


class Requests:
    """Sends requests to the Supervisor and waits for replies, from any thread."""

    def __init__(self, workers: DeclaredWorkers) -> None:
        self.parts: RunningParts | None = None
        """None while the system is not running."""
        self._workers = workers

    @property
    def running(self) -> RunningParts:
        """The parts of the running system.

        Raises:
            RequestRefusedError: the system is not running.
        """
        if self.parts is None:
            raise RequestRefusedError("the system is not running")
        return self.parts

    @property
    def actors(self) -> Actors:
        """The actors of the running system.

        Raises:
            RequestRefusedError: the system is not running.
        """
        return self.running.actors

    def supervisor(self, request: Callable[[Receiver], object], timeout_s: float = REPLY_TIMEOUT_S) -> Reply:
        """Send the Supervisor a request that names an inbox, and return what arrives there.

        Raises:
            UnknownWorkerError: the request names a worker that does not exist.
            PausedError: a pause prevents what the request asks for.
            RequestRefusedError: the Supervisor declined, or has ended.
            RequestTimeoutError: no reply arrived in time.
        """
        inbox = Inbox()
        if not tell(self.actors.supervisor, request(inbox)):
            raise RequestRefusedError("the supervisor has ended")
        reply: Reply | Refused = inbox.get(timeout_s)
        if isinstance(reply, Refused):
            if reply.unknown is not None:
                raise self._workers.unknown(reply.unknown)
            if reply.paused is not None:
                raise PausedError(reply.reason, reply.paused)
            raise RequestRefusedError(reply.reason)
        return reply

    def alert_desk(self, request: Callable[[Receiver], object]) -> Any:
        """Send the AlertDesk a request and return its reply; None in a system without alerts."""
        inbox = Inbox()
        if not tell(self.actors.alerts, request(inbox)):
            return None
        return inbox.get(REPLY_TIMEOUT_S)
