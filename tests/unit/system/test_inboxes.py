"""EV-07: a subscriber that never reads keeps the newest events, and delays no other one."""

from __future__ import annotations

import pytest

from rekindle.actors.errors import RequestTimeoutError
from rekindle.actors.system.inboxes import EventStream, LatestInbox


def test_ev_07_of_unread_events_the_oldest_are_dropped_and_the_newest_kept() -> None:
    """EV-07."""
    inbox, other = LatestInbox(most=3), LatestInbox(most=100)
    for number in range(10):
        inbox.tell(number)
        other.tell(number)
    assert [inbox.get(0) for _ in range(3)] == [7, 8, 9]
    assert inbox.dropped == 7
    assert [other.get(0) for _ in range(10)] == list(range(10))


def test_a_stream_tells_how_many_were_dropped() -> None:
    inbox = LatestInbox(most=1)
    stream = EventStream(inbox, lambda: None)
    inbox.tell("a")
    inbox.tell("b")
    assert (stream.next(0), stream.dropped) == ("b", 1)
    with pytest.raises(RequestTimeoutError):
        stream.next(0)
