"""A queue of calls that one thread makes, and the actors that share it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from queue import SimpleQueue

import pykka
import pytest

from rekindle.actors.runtime.lanes import Lane, lane_actor
from rekindle.actors.runtime.resilient_actor import ResilientActor
from rekindle.actors.system.inboxes import Inbox

PATIENCE_S = 20.0


@pytest.fixture
def lane() -> Iterator[Lane]:
    lane = Lane("core")
    yield lane
    assert lane.close(PATIENCE_S)


def test_calls_of_many_threads_are_all_made_those_of_each_in_order(lane: Lane) -> None:
    made: SimpleQueue[tuple[int, int]] = SimpleQueue()

    def post_many(poster: int) -> None:
        for number in range(2000):
            lane.post(lambda number=number: made.put((poster, number)))  # type: ignore[misc]

    threads = [threading.Thread(target=post_many, args=(poster,)) for poster in range(4)]
    for thread in threads:
        thread.start()
    calls = [made.get(timeout=PATIENCE_S) for _ in range(4 * 2000)]
    for thread in threads:
        thread.join()
    for poster in range(4):
        assert [number for by, number in calls if by == poster] == list(range(2000))


def test_all_calls_are_made_by_the_thread_of_the_lane(lane: Lane) -> None:
    by: SimpleQueue[str] = SimpleQueue()
    lane.post(lambda: by.put(threading.current_thread().name))
    lane.post(lambda: lane.post(lambda: by.put(threading.current_thread().name)))
    assert [by.get(timeout=PATIENCE_S) for _ in range(2)] == ["rekindle-core"] * 2


def test_a_call_posted_by_a_call_comes_after_the_calls_that_wait(lane: Lane) -> None:
    made: SimpleQueue[str] = SimpleQueue()

    def first() -> None:
        lane.post(lambda: made.put("posted by the first"))
        made.put("first")

    held = threading.Event()
    lane.post(lambda: held.wait(PATIENCE_S))
    lane.post(first)
    lane.post(lambda: made.put("second"))
    held.set()
    assert [made.get(timeout=PATIENCE_S) for _ in range(3)] == ["first", "second", "posted by the first"]


def test_a_call_of_another_lane_may_wait_for_an_answer_of_this_one(lane: Lane) -> None:
    """A host's log sink runs on the thread that reads the output, and may ask how a worker is."""
    inbox, answers, other = Inbox(), SimpleQueue[str](), Lane("watcher")
    other.post(lambda: lane.post(lambda: inbox.tell("answer")))
    other.post(lambda: answers.put(inbox.get(PATIENCE_S)))
    assert answers.get(timeout=PATIENCE_S) == "answer"
    assert other.close(PATIENCE_S)


def test_a_lane_that_is_busy_does_not_hold_up_another(lane: Lane) -> None:
    """A worker that floods the supervisor with output must not keep the actors from answering."""
    held, made, other = threading.Event(), threading.Event(), Lane("watcher")
    other.post(lambda: held.wait(PATIENCE_S))
    lane.post(made.set)
    assert made.wait(PATIENCE_S)
    held.set()
    assert other.close(PATIENCE_S)


def test_a_call_that_raises_does_not_stop_the_others(lane: Lane) -> None:
    made = threading.Event()

    def fail() -> None:
        raise SystemExit("a mistake")

    lane.post(fail)
    lane.post(fail)
    lane.post(made.set)
    assert made.wait(PATIENCE_S)


def test_it_makes_all_queued_calls_before_it_closes() -> None:
    lane, made = Lane("core"), []
    for number in range(1000):
        lane.post(lambda number=number: made.append(number))  # type: ignore[misc]
    assert lane.close(PATIENCE_S)
    assert made == list(range(1000))


def test_it_makes_what_its_last_calls_post_before_it_closes() -> None:
    lane, made = Lane("core"), []
    lane.post(lambda: lane.post(lambda: lane.post(lambda: made.append("the last"))))
    assert lane.close(PATIENCE_S)
    assert made == ["the last"]


def test_a_lane_that_does_not_end_in_time_is_reported() -> None:
    lane, held = Lane("core"), threading.Event()
    lane.post(lambda: held.wait(PATIENCE_S))
    assert not lane.close(0.01)
    held.set()
    assert lane.close(PATIENCE_S)


def test_an_actor_that_raises_while_it_stops_receives_nothing_more(lane: Lane) -> None:
    received: SimpleQueue[str] = SimpleQueue()

    class Bad(ResilientActor):
        ends_when_stopped = True

        def handle(self, message: str) -> None:
            received.put(message)

        def on_stop(self) -> None:
            raise SystemExit("a mistake")

    bad = lane_actor(Bad, lane.post).start()
    bad.tell("before")
    bad.stop(block=False)
    bad.tell("on its way")
    lane.post(lambda: received.put("the end"))
    assert [received.get(timeout=PATIENCE_S) for _ in range(2)] == ["before", "the end"]
    with pytest.raises(pykka.ActorDeadError):
        bad.tell("after")


def test_actors_of_one_lane_receive_in_the_order_in_which_messages_were_sent(lane: Lane) -> None:
    received: SimpleQueue[tuple[str, int]] = SimpleQueue()

    class Named(ResilientActor):
        ends_when_stopped = True

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        def handle(self, message: int) -> None:
            received.put((self.name, message))

    one, other = (lane_actor(Named, lane.post).start(name) for name in ("one", "other"))
    for number in range(100):
        one.tell(number)
        other.tell(number)
    expected = [(name, number) for number in range(100) for name in ("one", "other")]
    assert [received.get(timeout=PATIENCE_S) for _ in expected] == expected
    for ref in (one, other):
        ref.stop(block=False)
