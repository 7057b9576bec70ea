"""What becomes of a job whose worker died, and the figures of queues."""

from __future__ import annotations

import pytest

from rekindle.actors.facts.jobs import (
    JobState,
    QueueStats,
    Verdict,
    all_queues,
    queue_stats,
    sound_count,
)
from rekindle.actors.rules.job_verdicts import verdict_after_crash


@pytest.mark.parametrize(
    ("before", "verdict"),
    [
        (0, Verdict(JobState.PENDING, 1)),
        (1, Verdict(JobState.PENDING, 2)),
        (2, Verdict(JobState.TOXIC, 3, "failed after 3 worker crashes")),
        (7, Verdict(JobState.TOXIC, 8, "failed after 8 worker crashes")),
    ],
)
def test_jr_03_a_job_is_requeued_twice_and_the_third_crash_convicts(before: int, verdict: Verdict) -> None:
    assert verdict_after_crash(before, counted=True, retries=2, alone=False) == verdict


def test_a_budget_of_none_at_all_convicts_at_once() -> None:
    assert verdict_after_crash(0, counted=True, retries=0, alone=False).error == "failed after 1 worker crash"


@pytest.mark.parametrize("alone", [False, True])
def test_without_a_limit_nothing_convicts(alone: bool) -> None:
    assert verdict_after_crash(50, counted=True, retries=None, alone=alone) == Verdict(JobState.PENDING, 51)


def test_dying_alone_convicts_no_sooner_and_says_so() -> None:
    """The first crash may have been a neighbour's, and the second a kill from outside."""
    assert verdict_after_crash(1, counted=True, retries=2, alone=True) == Verdict(JobState.PENDING, 2)
    third = verdict_after_crash(2, counted=True, retries=2, alone=True)
    assert third.error == "failed after 3 worker crashes, the last one while it ran alone"


@pytest.mark.parametrize("alone", [False, True])
def test_a_stop_counts_for_nothing(alone: bool) -> None:
    assert verdict_after_crash(2, counted=False, retries=2, alone=alone) == Verdict(JobState.PENDING, 2)


@pytest.mark.parametrize("stored", ["3", None, -1, 2.0, True, b"1"])
def test_jr_07_an_invalid_count_is_recognised(stored: object) -> None:
    assert sound_count(stored) is None
    assert sound_count(0) == 0


def test_ev_10_all_queues_are_summed_weighted_and_the_longest_counts() -> None:
    tag = QueueStats(queue="tag", pending=3, running=1, completed=2, average_s=10.0, eta_s=30.0)
    library = QueueStats(queue="library", pending=4, completed=6, average_s=20.0, eta_s=80.0)
    together = all_queues([tag, library])
    assert (together.queue, together.pending, together.running, together.completed) == (None, 7, 1, 8)
    assert (together.average_s, together.eta_s) == (17.5, 80.0)


def test_ev_11_a_queue_without_a_completed_job_has_no_average() -> None:
    stats = queue_stats("tag", counts={"pending": 3}, busy_ms=0)
    assert (stats.average_s, stats.eta_s) == (0.0, 0.0)
    assert all_queues([]).average_s == 0.0


def test_the_time_left_is_shared_by_the_busy_workers() -> None:
    counts = {"pending": 10, "running": 2, "done": 4, "error": 1, "toxic": 1}
    stats = queue_stats("tag", counts=counts, busy_ms=12_000)
    assert (stats.average_s, stats.eta_s, stats.errors, stats.toxic) == (3.0, 15.0, 1, 1)
