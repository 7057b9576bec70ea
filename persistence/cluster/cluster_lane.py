"""One thread with one connection to the database of the cluster.

A server that cannot be reached costs a caller nothing: the answer is `StoreAway`. Requests that wait behind
one that hangs are answered the same way when a newer one arrives, as their time is over.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
from loguru import logger
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from rekindle.actors.cluster.cluster_messages import StoreAway
from rekindle.actors.errors import StoreError
from rekindle.actors.ports import Receiver
from rekindle.actors.runtime.resilient_actor import tell

from ..database.driver_errors import failure

CLOSE_S = 5.0

Work = Callable[[Connection], object]


class LaneRequest(msgspec.Struct, frozen=True):
    """A request that waits for the connection."""

    request: object
    receiver: Receiver
    work: Work
    at: float


class ClusterLane:
    """Answers requests one after the other."""

    def __init__(self, name: str, engine: Engine, shown: str, *, patience_s: float) -> None:
        self._engine = engine
        self._shown = shown
        self._patience_s = patience_s
        """A request that has waited for so long is no longer tried."""
        self._queue: deque[LaneRequest] = deque()
        self._ready = threading.Condition()
        self._closed = False
        self._connection: Connection | None = None
        self._was_away = False
        self._thread = threading.Thread(target=self._work, name=f"rekindle-{name}", daemon=True)
        self._thread.start()

    def ask(self, request: object, receiver: Receiver, work: Work) -> None:
        """Have the work done in a transaction, and tell the receiver what it returns."""
        with self._ready:
            self._queue.append(LaneRequest(request, receiver, work, time.monotonic()))
            self._ready.notify()

    def close(self) -> bool:
        """End the thread; whether it has ended."""
        with self._ready:
            self._closed = True
            self._queue.clear()
            self._ready.notify()
        self._thread.join(CLOSE_S)
        return not self._thread.is_alive()

    def _work(self) -> None:
        while (asked := self._next()) is not None:
            tell(asked.receiver, self._answer(asked))
        self._drop()

    def _next(self) -> LaneRequest | None:
        with self._ready:
            self._ready.wait_for(lambda: self._closed or self._queue)
            return None if self._closed else self._queue.popleft()

    def _answer(self, asked: LaneRequest) -> object:
        if time.monotonic() - asked.at > self._patience_s:
            return StoreAway(request=asked.request, reason=f"{self._shown} does not answer in time")
        try:
            answer = self._try(asked.work)
        except (SQLAlchemyError, StoreError) as error:
            self._drop()
            return StoreAway(request=asked.request, reason=self._reason(error))
        except Exception as error:  # noqa: BLE001  # the lane must answer the next request
            self._drop()
            logger.opt(exception=error).error("cluster: a request to {} failed", self._shown)
            return StoreAway(request=asked.request, reason=f"{type(error).__name__}: {error}")
        self._was_away = False
        return answer

    def _try(self, work: Work) -> Any:
        if self._connection is None:
            self._connection = self._engine.connect()
        with self._connection.begin():
            return work(self._connection)

    def _reason(self, error: Exception) -> str:
        reason = str(error if isinstance(error, StoreError) else failure(self._shown, error))
        if not self._was_away:
            self._was_away = True
            logger.warning("cluster: {}", reason)
        return reason

    def _drop(self) -> None:
        if self._connection is not None:
            with suppress(SQLAlchemyError):
                self._connection.invalidate()
                self._connection.close()
            self._connection = None
