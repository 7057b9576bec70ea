"""Hear signals in a thread of its own.

Python runs a signal's handler in the main thread, once that thread runs. One that was about to wait
when the signal came waits on, and a SIGTERM could go unheard for as long as nothing else happened.
The number of the signal, though, is written to a descriptor at once, whatever thread was hit.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

END = b"\0"
"""No signal has this number."""

MOST_AT_ONCE = 64


@contextmanager
def hearing(handlers: Mapping[int, Callable[[], None]]) -> Iterator[None]:
    """Have these called when their signals come, one at a time, until the block ends."""
    heard, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    listener = threading.Thread(target=_listen, args=(heard, handlers), name="rekindle-signals", daemon=True)
    with ExitStack() as stack:
        stack.callback(os.close, heard)
        stack.callback(os.close, wakeup)
        listener.start()
        stack.callback(listener.join)
        stack.callback(os.write, wakeup, END)
        stack.callback(signal.set_wakeup_fd, signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False))
        for number in handlers:
            stack.callback(signal.signal, number, signal.signal(number, _only_wake))
        yield


def _only_wake(_signum: int, _frame: object) -> None:
    """Be there: without a handler nothing is written, and the signal would end us."""


def _listen(heard: int, handlers: Mapping[int, Callable[[], None]]) -> None:
    while True:
        for number in os.read(heard, MOST_AT_ONCE):
            if number == END[0]:
                return
            handlers.get(number, _nothing)()


def _nothing() -> None:
    """Somebody else's signal, which Python writes to the same descriptor."""
