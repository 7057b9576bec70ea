"""Calls that block, each kind in a lane of its own: a slow lane never holds up another.

The event loop never blocks; a call runs on a thread of its lane, and a lane has only so many.
Who finds the lane full waits for a place, as long as the lane's patience lasts. A call that
outlasts the patience of its request keeps its place until it ends.

The threads are daemons: a call that an actor never answers must not keep a process from ending.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from typing import Any, TypeVar

R = TypeVar("R")

CROWD = 256
"""More requests than ever wait at the same time."""


class LaneFullError(Exception):
    """The call was not begun: no place became free in time."""


class LaneSlowError(Exception):
    """The call was begun and has not ended in time."""


class LanesClosedError(Exception):
    """The server is stopping."""


class Lane(Enum):
    """Which calls share their places: (its name, how many at once, seconds of patience)."""

    SIGHT = ("sight", 8, 10.0)
    """Asks the actors, never the store."""
    STORE = ("store", 4, 10.0)
    """Reads the store, which may be away."""
    ORDER = ("order", 4, 10.0)
    """An order that the actors take at once."""
    LONG = ("long", 8, 120.0)
    """An order that waits for processes to end."""

    @property
    def places(self) -> int:
        """How many calls may be under way."""
        return self.value[1]

    @property
    def patience_s(self) -> float:
        """How long a request waits, for a place and for its answer together."""
        return self.value[2]


class Lanes:
    """The lanes of one server. Belongs to its event loop."""

    def __init__(self) -> None:
        self._places = {lane: asyncio.Semaphore(lane.places) for lane in Lane}
        self._waiting: set[asyncio.Future[Any]] = set()
        self._closed = False

    async def run(self, lane: Lane, call: Callable[[], R]) -> R:
        """What the call returns or raises.

        Raises:
            LaneFullError: it was not begun in time.
            LaneSlowError: it has not ended in time, and goes on.
            LanesClosedError: the server stops; a call that was begun goes on.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + lane.patience_s
        await self._place(lane, deadline)
        ended: asyncio.Future[Any] = loop.create_future()
        try:
            _begin(loop, call, ended, self._places[lane].release)
        except RuntimeError as error:  # no thread to be had
            self._places[lane].release()
            raise LaneFullError from error
        result: R = await self._outcome(ended, deadline)
        return result

    def close(self) -> None:
        """Let go of everyone who waits, now and from now on."""
        self._closed = True
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_exception(LanesClosedError())
        for places in self._places.values():
            for _ in range(CROWD):
                places.release()  # whoever waits for a place finds the lanes closed

    async def _place(self, lane: Lane, deadline: float) -> None:
        try:
            async with asyncio.timeout_at(deadline):
                await self._places[lane].acquire()
        except TimeoutError:
            raise LaneFullError from None
        if self._closed:
            raise LanesClosedError

    async def _outcome(self, ended: asyncio.Future[Any], deadline: float) -> Any:
        self._waiting.add(ended)
        try:
            async with asyncio.timeout_at(deadline):
                return await ended
        except TimeoutError:
            if ended.cancelled():
                raise LaneSlowError from None
            raise  # the call's own
        finally:
            self._waiting.discard(ended)


def _begin(
    loop: asyncio.AbstractEventLoop,
    call: Callable[[], object],
    ended: asyncio.Future[Any],
    leave: Callable[[], None],
) -> None:
    """Run the call on a thread; how it ended is told to the loop."""

    def settle(result: object, error: Exception | None) -> None:
        leave()
        if ended.done():
            return
        if error is None:
            ended.set_result(result)
        else:
            ended.set_exception(error)

    def work() -> None:
        result, error = _tried(call)
        with suppress(RuntimeError):  # the server has ended meanwhile
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=work, name="rekindle-control-call", daemon=True).start()


def _tried(call: Callable[[], object]) -> tuple[object, Exception | None]:
    try:
        return call(), None
    except StopIteration as error:  # a future cannot carry it
        return None, RuntimeError(repr(error))
    except Exception as error:  # noqa: BLE001  # whatever it is, the waiting request gets it
        return None, error
    except (SystemExit, KeyboardInterrupt) as error:  # the loop would obey it
        return None, RuntimeError(repr(error))
