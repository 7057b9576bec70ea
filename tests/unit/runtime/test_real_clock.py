"""The clock of the real runtime."""

from __future__ import annotations

import time

import pytest

from rekindle.actors.runtime.thread_runtime import RealClock


def test_durations_are_measured_with_the_clock_that_never_jumps() -> None:
    """With the wall clock, every other test passed: none sets the clock of the machine."""
    before = time.monotonic()
    now = RealClock().monotonic()
    assert before <= now <= time.monotonic()


def test_the_wall_clock_is_in_milliseconds_since_1970(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 1_790_000_000_123_456_789)
    assert RealClock().wall_ms() == 1_790_000_000_123
