"""Handles signals in a separate thread.

Python runs signal handlers in the main thread, and only when that thread runs bytecode. If the main
thread is about to block when the signal arrives, a SIGTERM could stay unhandled until something else
happens. The signal number is written to the wakeup descriptor at once, though, whichever thread
receives the signal.
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
def handle_signals(handlers: Mapping[int, Callable[[], None]]) -> Iterator[None]:
    """Call these handlers when their signals arrive, one at a time, until the block ends.

    A signal that the caller of the program had blocked is unblocked, or it would never arrive.
    """
    received, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    listener = threading.Thread(
        target=_listen, args=(received, handlers), name="rekindle-signals", daemon=True
    )
    with ExitStack() as stack:
        stack.callback(os.close, received)
        stack.callback(os.close, wakeup)
        listener.start()
        stack.callback(listener.join)
        stack.callback(os.write, wakeup, END)
        stack.callback(signal.set_wakeup_fd, signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False))
        for number in handlers:
            stack.callback(signal.signal, number, signal.signal(number, _only_wake))
        mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, handlers)
        stack.callback(signal.pthread_sigmask, signal.SIG_SETMASK, mask)
        yield


def _only_wake(_signum: int, _frame: object) -> None:
    """Do nothing: with no handler Python writes no wakeup byte, and the signal would end the process."""


def _listen(received: int, handlers: Mapping[int, Callable[[], None]]) -> None:
    while True:
        for number in os.read(received, MOST_AT_ONCE):
            if number == END[0]:
                return
            handlers.get(number, _ignore)()


def _ignore() -> None:
    """Python writes the signals of other handlers to the same descriptor."""
