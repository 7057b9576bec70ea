"""How often a worker speaks of its jobs."""

from __future__ import annotations

from rekindle.actors.processes.watch.frame_reader import FRAMES_PER_SECOND
from rekindle.worker.rate_limit import BURST, INTERVAL_S, RateLimit


def test_occasional_frames_are_sent_at_once() -> None:
    pace = RateLimit()
    assert [pace.wait_s(number * INTERVAL_S) for number in range(100)] == [0.0] * 100


def test_a_burst_is_sent_at_once_and_later_frames_wait_for_the_interval() -> None:
    pace = RateLimit()
    assert [pace.wait_s(5.0) for _ in range(BURST)] == [0.0] * BURST
    assert pace.wait_s(5.0) == INTERVAL_S
    assert pace.wait_s(5.0 + 10 * BURST * INTERVAL_S) == 0.0


def test_a_worker_within_the_rate_sends_no_more_than_a_supervisor_accepts() -> None:
    pace, now, sent = RateLimit(), 0.0, 0
    while now < 10.0:
        now += pace.wait_s(now) or 0.0001
        sent += 1
    assert sent < FRAMES_PER_SECOND * 10 / 2


def test_a_clock_that_stands_still_gives_no_breath() -> None:
    pace = RateLimit()
    waits = [pace.wait_s(0.0) for _ in range(BURST + 3)]
    assert waits[BURST:] == [INTERVAL_S, 2 * INTERVAL_S, 3 * INTERVAL_S]
