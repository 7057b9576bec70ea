"""The threads of one pool: started on demand and reused, since starting one takes a while.

They are daemon threads: a call that never returns must not keep the process from exiting.
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


class CallThreads:
    """Runs calls, at most `size` at the same time. Belongs to an event loop."""

    def __init__(self, name: str, size: int) -> None:
        self.free = asyncio.Semaphore(size)
        self._name = name
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._busy = 0

    def submit(self, call: Callable[[], object], ended: asyncio.Future[Any]) -> None:
        """Run the call; the caller has acquired `free`, which is released when the call returns.

        Raises:
            RuntimeError: no thread can be started; `free` stays acquired.
        """
        loop = asyncio.get_running_loop()
        if self._busy == len(self._threads):
            self._start_thread()
        self._busy += 1

        def settle(result: object, error: Exception | None) -> None:
            self._busy -= 1
            self.free.release()
            if not ended.done():
                ended.set_result(result) if error is None else ended.set_exception(error)

        self._calls.put(lambda: _run_call(loop, call, settle))

    def close(self) -> None:
        """End every thread, each after its current call."""
        for _ in self._threads:
            self._calls.put(None)

    def join(self, deadline: float) -> None:
        """Wait for the threads, until this monotonic time."""
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _start_thread(self) -> None:
        thread = threading.Thread(target=self._run, name=f"rekindle-control-{self._name}", daemon=True)
        thread.start()
        self._threads.append(thread)

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            call()


def _run_call(loop: asyncio.AbstractEventLoop, call: Callable[[], object], settle: Settle) -> None:
    result, error = _result_of(call)
    with suppress(RuntimeError):  # the server has stopped meanwhile
        loop.call_soon_threadsafe(settle, result, error)


def _result_of(call: Callable[[], object]) -> tuple[object, Exception | None]:
    try:
        return call(), None
    except StopIteration as error:  # a future cannot carry it
        return None, RuntimeError(repr(error))
    except Exception as error:  # noqa: BLE001  # the request that waits gets every error
        return None, error
    except (SystemExit, KeyboardInterrupt) as error:  # the loop would obey it
        return None, RuntimeError(repr(error))
