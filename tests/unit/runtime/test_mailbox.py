"""A queue whose short waits end."""

from __future__ import annotations

import signal
import threading
from queue import Empty

import pytest

from rekindle.actors.runtime.mailbox import Mailbox

PATIENCE_S = 20.0


def test_it_gives_the_items_in_their_order() -> None:
    box: Mailbox[int] = Mailbox()
    for number in range(3):
        box.put(number)
    assert len(box) == 3
    assert [box.get() for _ in range(3)] == [0, 1, 2]


@pytest.mark.parametrize("timeout_s", [-1.0, 0.0, 0.001])
def test_it_is_empty_when_nothing_came_in_time(timeout_s: float) -> None:
    with pytest.raises(Empty):
        Mailbox[int]().get(timeout_s)


def test_a_waiting_item_is_returned_even_with_an_expired_timeout() -> None:
    box: Mailbox[int] = Mailbox()
    box.put(1)
    assert box.get(-1.0) == 1


def test_every_short_wait_ends() -> None:
    """On a busy machine a SimpleQueue of Python 3.11 let one of a few thousand wait without end."""
    ended = threading.Semaphore(0)

    def wait_shortly() -> None:
        box: Mailbox[int] = Mailbox()
        for _ in range(5000):
            box.put(1)
            box.get()
            with pytest.raises(Empty):
                box.get(0.000_001)
        ended.release()

    for _ in range(4):
        threading.Thread(target=wait_shortly, daemon=True).start()
    assert all(ended.acquire(timeout=PATIENCE_S) for _ in range(4))


def test_every_item_reaches_one_waiting_thread() -> None:
    box: Mailbox[int] = Mailbox()
    found: Mailbox[int] = Mailbox()
    threads = [threading.Thread(target=lambda: found.put(box.get(PATIENCE_S))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for number in range(8):
        box.put(number)
    assert sorted(found.get(PATIENCE_S) for _ in range(8)) == list(range(8))
    for thread in threads:
        thread.join()


def test_a_signal_handler_may_put_at_any_point() -> None:
    box: Mailbox[int] = Mailbox()
    before = signal.signal(signal.SIGALRM, lambda _signum, _frame: box.put(1))
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        assert sum(box.get(PATIENCE_S) for _ in range(200)) == 200
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
