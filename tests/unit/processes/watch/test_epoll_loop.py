"""A thread over descriptors and calls, one at a time."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from functools import partial
from queue import SimpleQueue

import pytest

from rekindle.actors.processes.watch.epoll_loop import CALLS_AT_ONCE, EpollLoop

PATIENCE_S = 20.0


@pytest.fixture
def loop() -> Iterator[EpollLoop]:
    loop = EpollLoop("watcher")
    yield loop
    loop.post(loop.end)
    assert loop.join(PATIENCE_S)


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    yield read, write
    os.close(read)
    os.close(write)


def test_calls_of_many_threads_are_all_made_those_of_each_in_order(loop: EpollLoop) -> None:
    made: SimpleQueue[tuple[int, int]] = SimpleQueue()

    def post_many(who: int) -> None:
        for number in range(2000):
            loop.post(lambda number=number: made.put((who, number)))  # type: ignore[misc]

    threads = [threading.Thread(target=post_many, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    heard = [made.get(timeout=PATIENCE_S) for _ in range(4 * 2000)]
    for thread in threads:
        thread.join()
    for who in range(4):
        assert [number for by, number in heard if by == who] == list(range(2000))


def test_a_call_that_is_posted_while_it_sleeps_wakes_it(loop: EpollLoop) -> None:
    for _ in range(50):
        made = threading.Event()
        loop.post(made.set)
        assert made.wait(PATIENCE_S)


def test_a_call_that_raises_costs_the_others_nothing(loop: EpollLoop) -> None:
    made = threading.Event()

    def fail(error: type[BaseException]) -> None:
        raise error("a mistake")

    for error in (ValueError, SystemExit, KeyboardInterrupt):
        loop.post(partial(fail, error))
        loop.post(partial(loop.after, 0.0, partial(fail, error)))
    loop.post(lambda: loop.after(0.01, made.set))
    assert made.wait(PATIENCE_S)


def test_a_descriptor_is_served_beside_many_calls(loop: EpollLoop, pipe: tuple[int, int]) -> None:
    """Calls that post further ones without end must not hide what the kernel reports."""
    read, write = pipe
    heard, over = threading.Event(), threading.Event()

    def again() -> None:
        if not over.is_set():
            loop.post(again)

    def hear() -> None:
        os.read(read, 1)
        heard.set()

    loop.post(lambda: loop.watch(read, hear))
    for _ in range(CALLS_AT_ONCE):
        loop.post(again)
    os.write(write, b"x")
    assert heard.wait(PATIENCE_S)
    over.set()
    loop.post(lambda: loop.unwatch(read))


def test_a_number_that_is_used_again_is_not_taken_for_the_old_one(loop: EpollLoop) -> None:
    """Both ends report at once; the first handler closes the other, and a call opens a new one."""
    told: list[str] = []
    done = threading.Event()
    (first, first_end), (second, second_end) = os.pipe(), os.pipe()

    def close_the_other(mine: int, other: int) -> None:
        told.append("old")
        for each in (mine, other):
            loop.unwatch(each)
            os.close(each)
        loop.post(lambda: open_another(min(mine, other)))

    def open_another(number: int) -> None:
        read, write = os.pipe()
        assert read == number  # the kernel gives out the lowest one that is free
        loop.watch(read, lambda: told.append("new"))
        opened.extend((read, write))
        loop.post(finish)

    def finish() -> None:
        loop.unwatch(opened[0])
        done.set()

    def begin() -> None:
        loop.watch(first, lambda: close_the_other(first, second))
        loop.watch(second, lambda: close_the_other(second, first))
        os.write(first_end, b"x")
        os.write(second_end, b"x")

    opened: list[int] = []
    loop.post(begin)
    assert done.wait(PATIENCE_S)
    assert told == ["old"]
    for descriptor in (first_end, second_end, *opened):
        os.close(descriptor)


def test_what_is_to_come_later_comes_in_its_order(loop: EpollLoop) -> None:
    made: SimpleQueue[str] = SimpleQueue()
    loop.post(lambda: loop.after(0.05, lambda: made.put("later")))
    loop.post(lambda: loop.after(0.01, lambda: made.put("sooner")))
    assert [made.get(timeout=PATIENCE_S) for _ in range(2)] == ["sooner", "later"]


def test_it_does_what_was_posted_before_it_ends_and_nothing_after() -> None:
    loop, made = EpollLoop("watcher"), []
    for number in range(1000):
        loop.post(lambda number=number: made.append(number))  # type: ignore[misc]
    loop.post(loop.end)
    assert loop.join(PATIENCE_S)
    assert made == list(range(1000))
    loop.post(lambda: made.append(-1))
    assert loop.join(PATIENCE_S)
    assert made[-1] == 999


def test_a_signal_handler_may_post_at_any_point_of_the_loop(loop: EpollLoop) -> None:
    """It waited for a lock that was held by the very thread that it had interrupted."""
    handled = 0

    def handle(_signum: int, _frame: object) -> None:
        nonlocal handled
        handled += 1
        loop.post(lambda: None)

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        while handled < 200:
            loop.post(lambda: None)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    made = threading.Event()
    loop.post(made.set)
    assert made.wait(PATIENCE_S)


def test_what_is_urgent_comes_first_and_all_else_in_the_order_of_the_kernel(loop: EpollLoop) -> None:
    pipes = [os.pipe() for _ in range(4)]
    made: SimpleQueue[int] = SimpleQueue()
    watched, held = threading.Event(), threading.Event()

    def take(place: int) -> None:
        os.read(pipes[place][0], 1)
        made.put(place)

    def watch_all() -> None:
        for place, (read, _) in enumerate(pipes):
            loop.watch(read, partial(take, place), urgent=place == 2)
        watched.set()
        held.wait(PATIENCE_S)

    loop.post(watch_all)
    assert watched.wait(PATIENCE_S)
    for place in (1, 0, 3, 2):
        os.write(pipes[place][1], b"x")
    held.set()
    try:
        assert [made.get(timeout=PATIENCE_S) for _ in pipes] == [2, 1, 0, 3]
    finally:
        gone = threading.Event()
        for read, _ in pipes:
            loop.post(partial(loop.unwatch, read))
        loop.post(gone.set)
        assert gone.wait(PATIENCE_S)
        for descriptor in (end for pipe in pipes for end in pipe):
            os.close(descriptor)
