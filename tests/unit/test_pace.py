"""How often a worker speaks of its jobs."""

from __future__ import annotations

from rekindle.actors.processes.watch.frame_reader import FRAMES_PER_SECOND
from rekindle.worker.rate_limit import BREATH_S, BURST, Pace


def test_what_is_said_now_and_then_is_said_at_once() -> None:
    pace = Pace()
    assert [pace.wait_s(number * BREATH_S) for number in range(100)] == [0.0] * 100


def test_a_burst_is_said_at_once_and_what_follows_waits_for_its_breath() -> None:
    pace = Pace()
    assert [pace.wait_s(5.0) for _ in range(BURST)] == [0.0] * BURST
    assert pace.wait_s(5.0) == BREATH_S
    assert pace.wait_s(5.0 + 10 * BURST * BREATH_S) == 0.0


def test_nobody_who_keeps_the_pace_sends_more_than_a_supervisor_takes() -> None:
    pace, now, sent = Pace(), 0.0, 0
    while now < 10.0:
        now += pace.wait_s(now) or 0.0001
        sent += 1
    assert sent < FRAMES_PER_SECOND * 10 / 2


def test_a_clock_that_stands_still_gives_no_breath() -> None:
    pace = Pace()
    waits = [pace.wait_s(0.0) for _ in range(BURST + 3)]
    assert waits[BURST:] == [BREATH_S, 2 * BREATH_S, 3 * BREATH_S]
