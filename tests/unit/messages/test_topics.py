"""EV-01 to EV-03: topics and their patterns."""

from __future__ import annotations

import pytest

from rekindle.actors.messages.topics import (
    ALL_EVENTS,
    ALL_STATES,
    Topics,
    event_topic,
    problem,
    worker_topic,
)


@pytest.mark.parametrize(
    ("pattern", "topic", "chosen"),
    [
        ("worker:*:status", "worker:tag:0:status", True),
        ("worker:*:status", "worker:library:3:status", True),
        ("worker:tag:*:status", "worker:tag:10:status", True),
        ("worker:tag:*:status", "worker:library:3:status", False),
        ("queue:*:status", "queue:tag:status", True),
        ("queue:*:status", "queue:status", False),
        ("queue:status", "queue:status", True),
        ("queue:status", "queue:tag:status", False),
        ("worker:tag:1:status", "worker:tag:10:status", False),
        ("event:*", "event:worker_died:worker:tag:0", True),
        ("event:*", "event:store_degraded", True),
        ("event:worker_died:*", "event:worker_died:worker:tag:0", True),
        ("event:worker_died:*", "event:worker_failed:worker:tag:0", False),
        ("event:store_degraded:*", "event:store_degraded", True),
        ("event:store:*", "event:store_degraded", False),
        ("event:*:worker:tag:0", "event:worker_died:worker:tag:0", True),
        ("event:*:worker:tag:0", "event:worker_died:worker:tag:10", False),
        ("*", "system:health", True),
        ("system:.*", "system:health", False),
    ],
)
def test_ev_01_to_03_a_star_stands_for_one_or_more_parts(pattern: str, topic: str, chosen: bool) -> None:
    """EV-01, EV-02, EV-03."""
    assert Topics((pattern,)).choose(topic) is chosen


def test_a_worker_that_is_called_otherwise_has_a_topic_as_well() -> None:
    assert worker_topic("worker:tag:0") == "worker:tag:0:status"
    assert worker_topic("web-1") == "worker:web-1:status"
    assert Topics(("worker:*:status",)).choose(worker_topic("web-1"))
    assert event_topic("worker_died", "web-1") == "event:worker_died:web-1"


@pytest.mark.parametrize("pattern", [*ALL_STATES, ALL_EVENTS, "*", "event:worker_died", "worker:*"])
def test_patterns_of_topics_that_there_are_have_no_problem(pattern: str) -> None:
    assert problem(pattern) is None


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        ":",
        "weather",
        "worker",
        "worker:tag",
        "worker:tag:0:mood",
        "system:disk",
        "queue:tag:jobs",
        "worker:ta*:status",
        "worker:**:status",
        "worker:tag 0:status",
        "worker:\n:status",
        "event",
        "event:" + "x" * 200,
        "event:*:*:*:*",
    ],
)
def test_a_pattern_that_can_choose_nothing_is_refused_with_a_sentence(pattern: str) -> None:
    assert problem(pattern)
