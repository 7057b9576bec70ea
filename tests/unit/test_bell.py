"""A bell that one thread waits for and any other may ring."""

from __future__ import annotations

import threading

from rekindle.actors.runtime.wakeup import Bell

PATIENCE_S = 20.0


def test_who_waits_is_woken_by_another_thread() -> None:
    bell, heard = Bell(), threading.Event()

    def wait() -> None:
        bell.wait()
        heard.set()

    thread = threading.Thread(target=wait)
    thread.start()
    bell.ring()
    assert heard.wait(PATIENCE_S)
    thread.join()


def test_rung_before_anybody_waits_it_is_heard_all_the_same() -> None:
    bell = Bell()
    bell.ring()
    assert bell.is_rung
    assert bell.wait(0.0)
    assert not bell.is_rung


def test_rung_twice_it_is_heard_once() -> None:
    bell = Bell()
    bell.ring()
    bell.ring()
    assert bell.wait(0.0)
    assert not bell.wait(0.001)


def test_a_wait_may_be_longer_than_the_platform_allows() -> None:
    bell = Bell()
    threading.Thread(target=bell.ring).start()
    assert bell.wait(1e12)
