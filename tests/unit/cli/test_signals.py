"""Signals that are handled while the main thread is blocked."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from queue import SimpleQueue

import pytest
from tests.processes.waiting import PATIENCE_S

from rekindle.cli.supervise.platform.signals import END, handle_signals


@pytest.fixture
def deaf_main_thread() -> Iterator[None]:
    """Another thread is hit by the signals below: the main thread waits on, as if it had missed them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


@pytest.mark.usefixtures("deaf_main_thread")
def test_a_signal_that_does_not_wake_the_main_thread_is_handled() -> None:
    heard: SimpleQueue[str] = SimpleQueue()
    with handle_signals({signal.SIGUSR1: lambda: heard.put("one"), signal.SIGUSR2: lambda: heard.put("two")}):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGUSR2})
        for number, word in ((signal.SIGUSR1, "one"), (signal.SIGUSR2, "two"), (signal.SIGUSR1, "one")):
            os.kill(os.getpid(), number)
            assert heard.get(timeout=PATIENCE_S) == word


def test_everything_is_as_before_afterwards() -> None:
    before = signal.getsignal(signal.SIGUSR1)
    descriptors = os.listdir("/proc/self/fd")
    with handle_signals({signal.SIGUSR1: lambda: None}):
        assert signal.getsignal(signal.SIGUSR1) is not before
    assert signal.getsignal(signal.SIGUSR1) is before
    assert os.listdir("/proc/self/fd") == descriptors
    assert "rekindle-signals" not in [thread.name for thread in threading.enumerate()]
    assert signal.set_wakeup_fd(-1) == -1


def test_a_signal_that_comes_right_after_the_end_is_left_in_the_pipe_for_the_program_that_follows() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def handle() -> None:
        begun.set()
        go_on.wait(PATIENCE_S)

    with handle_signals({signal.SIGUSR1: handle}) as handling:
        os.kill(os.getpid(), signal.SIGUSR1)
        assert begun.wait(PATIENCE_S)
        os.write(handling.pipe.wakeup, bytes([END[0], signal.SIGUSR2]))  # both wait when the pipe is read
        go_on.set()
        handling.listener.join(PATIENCE_S)
        os.set_blocking(handling.pipe.received, False)
        assert os.read(handling.pipe.received, 64) == bytes([signal.SIGUSR2])
