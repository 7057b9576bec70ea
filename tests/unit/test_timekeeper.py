"""The real timers, where a test with a virtual clock cannot see them."""

from __future__ import annotations

import pytest

from rekindle.actors.edges import Inbox
from rekindle.actors.runtime import RealClock
from rekindle.actors.timekeeper import Timekeeper


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
