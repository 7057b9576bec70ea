"""A queue that is worked off by one thread at a time: its own, or one that helps."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from queue import SimpleQueue

import pykka
import pytest

from rekindle.actors.runtime.lanes import MOST_HELP, Lane, housed
from rekindle.actors.runtime.resilient_actor import ResilientActor
from rekindle.actors.system.inboxes import Inbox

PATIENCE_S = 20.0


@pytest.fixture
def lane() -> Iterator[Lane]:
    lane = Lane("core")
    yield lane
    assert lane.close(PATIENCE_S)


def test_calls_of_many_threads_are_all_made_those_of_each_in_order(lane: Lane) -> None:
    """Half of them help, so that the baton changes hands all the time."""
    made: SimpleQueue[tuple[int, int]] = SimpleQueue()

    def post_many(who: int) -> None:
        for number in range(2000):
            lane.post(lambda number=number: made.put((who, number)))  # type: ignore[misc]

    def post_and_help(who: int) -> None:
        with lane.helper():
            for number in range(2000):
                lane.post(lambda number=number: made.put((who, number)))  # type: ignore[misc]
                lane.help()

    threads = [threading.Thread(target=(post_many, post_and_help)[who % 2], args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    heard = [made.get(timeout=PATIENCE_S) for _ in range(4 * 2000)]
    for thread in threads:
        thread.join()
    for who in range(4):
        assert [number for by, number in heard if by == who] == list(range(2000))


def test_no_two_threads_make_calls_at_the_same_time(lane: Lane) -> None:
    inside, most = 0, 0
    done: SimpleQueue[None] = SimpleQueue()

    def call() -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        threading.Event().wait(0.000_01)  # lets the others run
        inside -= 1
        done.put(None)

    def post_and_help() -> None:
        with lane.helper():
            for _ in range(200):
                lane.post(call)
                lane.help()

    threads = [threading.Thread(target=post_and_help) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(200):
        lane.post(call)
    for _ in range(4 * 200):
        done.get(timeout=PATIENCE_S)
    for thread in threads:
        thread.join()
    assert most == 1


def test_a_helper_makes_the_calls_that_it_posted_and_those_that_follow_from_them(lane: Lane) -> None:
    by: list[int] = []
    with lane.helper():
        lane.post(lambda: lane.post(lambda: by.append(threading.get_ident())))
        assert by == []
        lane.help()
    assert by == [threading.get_ident()]


def test_a_helper_goes_back_to_its_own_work_after_a_while_and_the_lane_goes_on(lane: Lane) -> None:
    made: SimpleQueue[int] = SimpleQueue()
    over = threading.Event()

    def again() -> None:
        made.put(threading.get_ident())
        if not over.is_set():
            lane.post(again)

    with lane.helper():
        lane.post(again)
        lane.help()
        by = [made.get(timeout=PATIENCE_S) for _ in range(MOST_HELP + 1)]
        over.set()
    assert by[:MOST_HELP] == [threading.get_ident()] * MOST_HELP
    assert by[MOST_HELP] != threading.get_ident()


def test_what_a_helper_left_behind_is_done_when_it_leaves(lane: Lane) -> None:
    made = threading.Event()
    with lane.helper():
        lane.post(made.set)
    assert made.wait(PATIENCE_S)


def test_a_helper_holds_nobody_up(lane: Lane) -> None:
    """One that is busy elsewhere: what others post is done meanwhile."""
    made = threading.Event()
    with lane.helper():
        thread = threading.Thread(target=lane.post, args=(made.set,))
        thread.start()
        assert made.wait(PATIENCE_S)
        thread.join()


def test_a_lane_helps_another_with_what_it_posts_there(lane: Lane) -> None:
    by: SimpleQueue[int] = SimpleQueue()
    store = Lane("store", lane)
    store.post(lambda: by.put(threading.get_ident()))
    store.post(lambda: lane.post(lambda: by.put(threading.get_ident())))
    its_own = by.get(timeout=PATIENCE_S)
    assert by.get(timeout=PATIENCE_S) == its_own
    assert store.close(PATIENCE_S)


def test_a_helper_that_waits_for_an_answer_gets_one(lane: Lane) -> None:
    """A host's log sink runs on the thread that reads the output, and may ask how a worker is."""
    inbox = Inbox()
    with lane.helper():
        lane.post(lambda: inbox.tell("answer"))
        assert inbox.get(PATIENCE_S) == "answer"


def test_a_call_that_raises_costs_the_others_nothing(lane: Lane) -> None:
    made = threading.Event()

    def fail() -> None:
        raise SystemExit("a mistake")

    lane.post(fail)
    with lane.helper():
        lane.post(fail)
        lane.help()
    lane.post(made.set)
    assert made.wait(PATIENCE_S)


def test_it_does_what_was_posted_before_it_closes() -> None:
    lane, made = Lane("core"), []
    for number in range(1000):
        lane.post(lambda number=number: made.append(number))  # type: ignore[misc]
    assert lane.close(PATIENCE_S)
    assert made == list(range(1000))


def test_an_actor_that_stops_badly_is_told_nothing_more(lane: Lane) -> None:
    heard: SimpleQueue[str] = SimpleQueue()

    class Bad(ResilientActor):
        def handle(self, message: str) -> None:
            heard.put(message)

        def on_stop(self) -> None:
            raise SystemExit("a mistake")

    bad = housed(Bad, lane.post).start()
    bad.tell("before")
    bad.stop(block=False)
    bad.tell("on its way")
    lane.post(lambda: heard.put("the end"))
    assert [heard.get(timeout=PATIENCE_S) for _ in range(2)] == ["before", "the end"]
    with pytest.raises(pykka.ActorDeadError):
        bad.tell("after")


# ── What can wait ────────────────────────────────────────────────────────────────────────


def test_what_can_wait_is_done_after_all_that_was_posted_since(lane: Lane) -> None:
    made: SimpleQueue[str] = SimpleQueue()

    def begin() -> None:
        lane.at_leisure(lambda: made.put("at leisure"))
        lane.post(lambda: lane.post(lambda: made.put("what follows")))
        lane.post(lambda: made.put("the rest"))

    lane.post(begin)
    assert [made.get(timeout=PATIENCE_S) for _ in range(3)] == ["the rest", "what follows", "at leisure"]


def test_what_can_wait_is_done_by_the_lanes_own_thread_also_when_another_asked_for_it(lane: Lane) -> None:
    by: SimpleQueue[int] = SimpleQueue()
    lane.post(lambda: by.put(threading.get_ident()))
    lane.at_leisure(lambda: by.put(threading.get_ident()))
    assert by.get(timeout=PATIENCE_S) == by.get(timeout=PATIENCE_S) != threading.get_ident()


def test_without_leisure_it_is_done_once_enough_of_it_waits(lane: Lane) -> None:
    """There is always something to do here, and at each time more that can wait."""
    made, over = threading.Event(), threading.Event()

    def again() -> None:
        lane.at_leisure(made.set)
        if not over.is_set():
            threading.Thread(target=lane.post, args=(again,)).start()

    lane.post(again)
    assert made.wait(PATIENCE_S)
    over.set()


def test_what_can_wait_is_done_before_a_lane_closes() -> None:
    lane, made = Lane("store"), []
    lane.post(lambda: lane.at_leisure(lambda: made.append("at leisure")))
    assert lane.close(PATIENCE_S)
    assert made == ["at leisure"]
