"""Blocking calls, each kind in a pool of its own, so that a slow kind never delays another.

The event loop never blocks: a call runs on a thread of its pool, and a pool has a fixed number of
threads. A call for which no thread is free waits until the pool's timeout. A call that takes longer
than its request waits keeps its thread until it returns.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from enum import Enum
from typing import Any, TypeVar

from .call_threads import CallThreads

R = TypeVar("R")

MOST_WAITING = 256
"""More requests than ever wait at the same time."""


class PoolFullError(Exception):
    """The call was not started: no thread became free in time."""


class CallTimeoutError(Exception):
    """The call was started and has not returned in time."""


class PoolsClosedError(Exception):
    """The server is stopping."""


class CallPool(Enum):
    """The kinds of calls: (name, number of threads, timeout in seconds)."""

    QUERY = ("query", 8, 10.0)
    """Asks the actors, never the store."""
    STORE = ("store", 4, 10.0)
    """Reads the store, which may be unavailable."""
    LOG = ("log", 2, 10.0)
    """Searches log files, for seconds each, and on a disk that may hang."""
    COMMAND = ("command", 4, 10.0)
    """A command that the actors answer at once."""
    LONG = ("long", 8, 120.0)
    """A command that waits for processes to exit."""

    @property
    def size(self) -> int:
        """How many calls may run at the same time."""
        return self.value[1]

    @property
    def timeout_s(self) -> float:
        """How long a request waits, for a thread and for the result together."""
        return self.value[2]


class CallPools:
    """The pools of one server. Belongs to its event loop."""

    def __init__(self) -> None:
        self._threads = {pool: CallThreads(pool.value[0], pool.size) for pool in CallPool}
        self._waiting: set[asyncio.Future[Any]] = set()
        self._closed = False
        self.before_closing: list[Callable[[], None]] = []
        """Called when the server begins to stop; ends what would not end by itself."""

    async def run(self, pool: CallPool, call: Callable[[], R]) -> R:
        """Run the call on a thread of this pool; returns or raises what the call does.

        Raises:
            PoolFullError: the call was not started in time.
            CallTimeoutError: the call has not returned in time; it continues.
            PoolsClosedError: the server is stopping; a call that was started continues.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + pool.timeout_s
        await self._wait_for_thread(pool, deadline)
        ended: asyncio.Future[Any] = loop.create_future()
        try:
            self._threads[pool].submit(call, ended)
        except RuntimeError as error:  # no thread can be started
            self._threads[pool].free.release()
            raise PoolFullError from error
        result: R = await self._result(ended, deadline)
        return result

    def close(self) -> None:
        """Fail every request that waits, now and from now on. Safe to call twice."""
        if self._closed:
            return
        self._closed = True
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_exception(PoolsClosedError())
        for threads in self._threads.values():
            threads.close()
            for _ in range(MOST_WAITING):
                threads.free.release()  # a request that waits for a thread finds the pools closed

    def join(self, timeout_s: float) -> None:
        """Wait this long for the threads of closed pools; from any thread."""
        deadline = time.monotonic() + timeout_s
        for threads in self._threads.values():
            threads.join(deadline)

    async def _wait_for_thread(self, pool: CallPool, deadline: float) -> None:
        try:
            async with asyncio.timeout_at(deadline):
                await self._threads[pool].free.acquire()
        except TimeoutError:
            raise PoolFullError from None
        if self._closed:
            raise PoolsClosedError

    async def _result(self, ended: asyncio.Future[Any], deadline: float) -> Any:
        self._waiting.add(ended)
        try:
            async with asyncio.timeout_at(deadline):
                return await ended
        except TimeoutError:
            if ended.cancelled():
                raise CallTimeoutError from None
            raise  # the call's own
        finally:
            self._waiting.discard(ended)
