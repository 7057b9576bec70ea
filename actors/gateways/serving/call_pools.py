"""Calls that block, each kind in a lane of its own: a slow lane never holds up another.

The event loop never blocks; a call runs on a thread of its lane, and a lane has only so many.
Who finds the lane full waits for a place, as long as the lane's patience lasts. A call that
outlasts the patience of its request keeps its place until it ends.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from enum import Enum
from typing import Any, TypeVar

from .call_threads import Hands

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
        self._hands = {lane: Hands(lane.name.lower(), lane.places) for lane in Lane}
        self._waiting: set[asyncio.Future[Any]] = set()
        self._closed = False
        self.before_closing: list[Callable[[], None]] = []
        """Ends what would not end by itself, before anybody is waited for."""

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
            self._hands[lane].begin(call, ended)
        except RuntimeError as error:  # no thread to be had
            self._hands[lane].places.release()
            raise LaneFullError from error
        result: R = await self._outcome(ended, deadline)
        return result

    def close(self) -> None:
        """Let go of everyone who waits, now and from now on. Safe to call twice."""
        if self._closed:
            return
        self._closed = True
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_exception(LanesClosedError())
        for hands in self._hands.values():
            hands.dismiss()
            for _ in range(CROWD):
                hands.places.release()  # whoever waits for a place finds the lanes closed

    def join(self, timeout_s: float) -> None:
        """Wait for the threads of closed lanes, as long as this; from any thread."""
        deadline = time.monotonic() + timeout_s
        for hands in self._hands.values():
            hands.join(deadline)

    async def _place(self, lane: Lane, deadline: float) -> None:
        try:
            async with asyncio.timeout_at(deadline):
                await self._hands[lane].places.acquire()
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
