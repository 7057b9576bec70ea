"""The real timers, where a test with a virtual clock cannot see them."""

from __future__ import annotations

import pytest
from loguru import logger

from rekindle.actors.runtime.thread_runtime import RealClock
from rekindle.actors.runtime.timekeeper import PRUNE_ABOVE, Timekeeper
from rekindle.actors.system.inboxes import Inbox


@pytest.mark.parametrize("delay_s", [1e10, 1e18, float("inf")])
def test_a_timer_for_centuries_does_not_end_all_others(delay_s: float) -> None:
    timekeeper, inbox = Timekeeper(RealClock()), Inbox()
    timekeeper.after(delay_s, inbox, "far")
    timekeeper.after(0.05, inbox, "first")
    assert inbox.get(20.0) == "first"
    # With nothing but the far one left, the thread has to wait for it.
    timekeeper.after(0.05, inbox, "second")
    assert inbox.get(20.0) == "second"
    timekeeper.close(20.0)


def test_timers_that_were_cancelled_do_not_gather_until_their_time_comes() -> None:
    timekeeper, inbox = Timekeeper(RealClock()), Inbox()
    timekeeper.after(0.3, inbox, "kept")
    for _ in range(10 * PRUNE_ABOVE):
        timekeeper.after(604_800.0, inbox, "cancelled").cancel()
    assert len(timekeeper._heap) <= 2 * PRUNE_ABOVE
    assert inbox.get(20.0) == "kept"
    timekeeper.close(20.0)


def test_a_log_that_raises_does_not_end_the_timers() -> None:
    class Refusing:
        def tell(self, message: object) -> None:
            raise ValueError(message)

    def raising(_message: object) -> None:
        raise OSError("the disk is full")

    timekeeper, inbox = Timekeeper(RealClock()), Inbox()
    logger.enable("rekindle")
    sink = logger.add(raising, catch=False)
    try:
        timekeeper.after(0.0, Refusing(), "refused")
        timekeeper.after(0.05, inbox, "told")
        assert inbox.get(20.0) == "told"
    finally:
        logger.remove(sink)
        logger.disable("rekindle")
        timekeeper.close(20.0)
