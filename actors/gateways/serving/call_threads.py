"""The threads of one lane: started when they are needed, and kept, since starting one takes a while.

They are daemons: a call that an actor never answers must not keep a process from ending.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

Settle = Callable[[object, Exception | None], None]


class Hands:
    """Carries out calls, no more at once than there are places. Belongs to an event loop."""

    def __init__(self, name: str, places: int) -> None:
        self.places = asyncio.Semaphore(places)
        self._name = name
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._busy = 0

    def begin(self, call: Callable[[], object], ended: asyncio.Future[Any]) -> None:
        """Have the call carried out; whoever calls this has a place, which is free again afterwards.

        Raises:
            RuntimeError: there is no thread to be had; the place is still taken.
        """
        loop = asyncio.get_running_loop()
        if self._busy == len(self._threads):
            self._hire()
        self._busy += 1

        def settle(result: object, error: Exception | None) -> None:
            self._busy -= 1
            self.places.release()
            if not ended.done():
                ended.set_result(result) if error is None else ended.set_exception(error)

        self._work.put(lambda: _carry_out(loop, call, settle))

    def dismiss(self) -> None:
        """Every thread ends, once it has ended its call."""
        for _ in self._threads:
            self._work.put(None)

    def join(self, deadline: float) -> None:
        """Wait for them, until this monotonic time."""
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _hire(self) -> None:
        thread = threading.Thread(target=self._toil, name=f"rekindle-control-{self._name}", daemon=True)
        thread.start()
        self._threads.append(thread)

    def _toil(self) -> None:
        while (work := self._work.get()) is not None:
            work()


def _carry_out(loop: asyncio.AbstractEventLoop, call: Callable[[], object], settle: Settle) -> None:
    result, error = _tried(call)
    with suppress(RuntimeError):  # the server has ended meanwhile
        loop.call_soon_threadsafe(settle, result, error)


def _tried(call: Callable[[], object]) -> tuple[object, Exception | None]:
    try:
        return call(), None
    except StopIteration as error:  # a future cannot carry it
        return None, RuntimeError(repr(error))
    except Exception as error:  # noqa: BLE001  # whatever it is, the waiting request gets it
        return None, error
    except (SystemExit, KeyboardInterrupt) as error:  # the loop would obey it
        return None, RuntimeError(repr(error))
