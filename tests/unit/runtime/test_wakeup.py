"""One thread waits for a wakeup, any other thread sets it."""

from __future__ import annotations

import threading

from rekindle.actors.runtime.wakeup import Wakeup

PATIENCE_S = 20.0


def test_another_thread_wakes_the_waiting_one() -> None:
    wakeup, woken = Wakeup(), threading.Event()

    def wait() -> None:
        wakeup.wait()
        woken.set()

    thread = threading.Thread(target=wait)
    thread.start()
    wakeup.set()
    assert woken.wait(PATIENCE_S)
    thread.join()


def test_a_wakeup_set_before_the_wait_ends_the_wait_at_once() -> None:
    wakeup = Wakeup()
    wakeup.set()
    assert wakeup.is_set
    assert wakeup.wait(0.0)
    assert not wakeup.is_set


def test_a_wakeup_set_twice_ends_one_wait() -> None:
    wakeup = Wakeup()
    wakeup.set()
    wakeup.set()
    assert wakeup.wait(0.0)
    assert not wakeup.wait(0.001)


def test_a_wait_may_be_longer_than_the_platform_allows() -> None:
    wakeup = Wakeup()
    threading.Thread(target=wakeup.set).start()
    assert wakeup.wait(1e12)
