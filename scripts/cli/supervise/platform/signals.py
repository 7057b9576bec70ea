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
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

HELD = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)

END = b"\0"
"""No signal has this number."""

MOST_AT_ONCE = 64

HANDLED_S = 5.0
"""How long the handlers of the signals so far may take."""


class SignalPipe(NamedTuple):
    """The ends of the pipe to which the interpreter writes the numbers of signals."""

    received: int
    wakeup: int


class Handling(NamedTuple):
    """The pipe, and the thread that handles what is in it."""

    pipe: SignalPipe
    listener: threading.Thread

    def end(self) -> None:
        """Leave signals in the pipe from now on, for the program that follows; earlier ones are handled."""
        os.write(self.pipe.wakeup, END)
        self.listener.join(HANDLED_S)


def at_once(call: Callable[[], object]) -> object:
    """Make a call here: for a caller in the main thread."""
    return call()


@contextmanager
def handle_signals(
    handlers: Mapping[int, Callable[[], None]],
    on_main: Callable[[Callable[[], object]], object] = at_once,
    inherited: SignalPipe | None = None,
) -> Iterator[Handling]:
    """Call these handlers when their signals arrive, one at a time, until the block ends.

    A signal that the caller of the program had blocked is unblocked, or it would never arrive.
    Only the main thread may set handlers: `on_main` makes a call there. What the former program of this
    process did not handle is in the pipe that it left.
    """
    pipe = inherited or SignalPipe(*os.pipe())
    received, wakeup = pipe
    os.set_blocking(wakeup, False)
    listener = threading.Thread(target=_listen, args=(pipe, handlers), name="rekindle-signals", daemon=True)
    with ExitStack() as stack:
        stack.callback(os.close, received)
        stack.callback(os.close, wakeup)
        listener.start()
        stack.callback(listener.join)
        stack.callback(os.write, wakeup, END)
        former = on_main(lambda: set_handlers(handlers, wakeup))
        assert isinstance(former, ExitStack)
        stack.callback(on_main, former.close)
        yield Handling(pipe, listener)


def set_handlers(numbers: Iterable[int], wakeup: int) -> ExitStack:
    """Have these signals written to the pipe; the stack undoes it. Both in the main thread only."""
    former = ExitStack()
    former.callback(signal.set_wakeup_fd, signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False))
    numbers = tuple(numbers)
    for number in numbers:
        former.callback(signal.signal, number, signal.signal(number, _only_wake))
    mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
    former.callback(signal.pthread_sigmask, signal.SIG_SETMASK, mask)
    return former


def hold_signals() -> None:
    """Have the kernel keep signals for this thread until they are unblocked, also across an exec."""
    signal.pthread_sigmask(signal.SIG_BLOCK, HELD)


def _only_wake(_signum: int, _frame: object) -> None:
    """Do nothing: with no handler Python writes no wakeup byte, and the signal would end the process."""


def _listen(pipe: SignalPipe, handlers: Mapping[int, Callable[[], None]]) -> None:
    while True:
        numbers = os.read(pipe.received, MOST_AT_ONCE)
        for place, number in enumerate(numbers, start=1):
            if number == END[0]:
                os.write(pipe.wakeup, numbers[place:])  # later ones are for the program that follows
                return
            handlers.get(number, _ignore)()


def _ignore() -> None:
    """Python writes the signals of other handlers to the same descriptor."""
