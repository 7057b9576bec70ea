"""The WorkItemDesk by itself: slow functions, and a machine without a free thread."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from tests.processes.waiting import PATIENCE_S, eventually

from rekindle.actors import (
    Release,
    ReleasePolicy,
    WorkerSpec,
    WorkReleased,
    WorkReleaseFailed,
    command,
)
from rekindle.actors.runtime.resilient_actor import tell
from rekindle.actors.spec.policies.work_item_policy import ReleaseOrder
from rekindle.actors.system.inboxes import Inbox
from rekindle.actors.work_item_desk import MOST_STUCK, THREADS, WorkItemDesk


def test_functions_that_were_slow_once_do_not_end_all_releases_for_good(no_traces: None) -> None:
    returned, broker = threading.Event(), Inbox()
    desk = WorkItemDesk("mark")
    desk.attend(broker)
    spec = WorkerSpec("w", command("true"))

    def told(call: Callable[[Release], object]) -> WorkReleased | WorkReleaseFailed:
        policy = ReleasePolicy(call=call, timeout_s=0.01)
        desk.tell(ReleaseOrder(Release("w", 1, "fg-7", 1, None), policy, None, spec))
        *_, event = broker.get(PATIENCE_S).items
        return event  # type: ignore[no-any-return]

    slow = [told(lambda _item: returned.wait(PATIENCE_S)) for _ in range(MOST_STUCK)]
    assert {type(event) for event in slow} == {WorkReleaseFailed}
    refused = told(lambda _item: True)
    assert isinstance(refused, WorkReleaseFailed)
    assert refused.reason == f"{MOST_STUCK} earlier calls have not come back"
    returned.set()
    assert eventually(lambda: isinstance(told(lambda _item: True), WorkReleased))
    assert desk.close(PATIENCE_S)


def test_a_release_without_a_free_thread_is_carried_out_with_the_next(
    monkeypatch: pytest.MonkeyPatch, no_traces: None
) -> None:
    broker, desk = Inbox(), WorkItemDesk("mark")
    desk.attend(broker)
    policy, spec = ReleasePolicy(call=lambda _item: True), WorkerSpec("w", command("true"))
    first, second = (
        ReleaseOrder(Release("w", generation, "fg-7", 1, None), policy, None, spec) for generation in (1, 2)
    )

    def no_thread(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as scarce:
        scarce.setattr(threading.Thread, "start", no_thread)
        tell(desk, first)
    tell(desk, second)
    told = [broker.get(PATIENCE_S).items[-1].generation for _ in range(2)]
    assert told == [1, 2]
    assert desk.close(PATIENCE_S)


def test_a_desk_that_is_left_begins_nothing_more_and_tells_of_nothing_that_it_did_not_begin(
    no_traces: None,
) -> None:
    """What waited behind slow releases was told as failed, so the next program did not begin it either."""
    go_on, begun, broker = threading.Event(), [], Inbox()
    desk = WorkItemDesk("mark")
    desk.attend(broker)

    def slow(item: Release) -> bool:
        begun.append(item.generation)
        return go_on.wait(PATIENCE_S)

    policy, spec = ReleasePolicy(call=slow), WorkerSpec("w", command("true"))
    for generation in range(THREADS + 2):
        desk.tell(ReleaseOrder(Release("w", generation, "fg-7", 1, None), policy, None, spec))
    assert eventually(lambda: len(begun) == THREADS)
    desk.leave()
    go_on.set()
    told = [broker.get(PATIENCE_S).items[-1] for _ in range(THREADS)]
    assert {type(event) for event in told} == {WorkReleased}
    assert desk.close(PATIENCE_S)
    assert sorted(begun) == sorted(event.generation for event in told) == list(range(THREADS))
