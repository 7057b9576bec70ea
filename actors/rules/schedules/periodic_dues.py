"""Pure: which job a periodic job owes its queue now.

Every due time is dealt with once: the store says up to which one that is done, and moves that mark in the
transaction that adds the job.
"""

from __future__ import annotations

import msgspec

from ...spec.policies.queues.periodic import Periodic
from ...spec.policies.schedule import Missed
from .timetable import LATE_MS, SET_BACK_MS


class PeriodicStep(msgspec.Struct, frozen=True):
    """What to do about the due times up to `until_ms`."""

    until_ms: int
    enqueues: bool
    missed: int
    """How many due times passed unseen, including those in whose place a job is enqueued."""
    next_ms: int
    """The due time after them."""


def step_of(job: Periodic, done_ms: int, now_ms: int) -> PeriodicStep | None:
    """What is due now; None if nothing is.

    Args:
        job: the periodic job.
        done_ms: up to which time its due times are dealt with.
        now_ms: the present.
    """
    calendar = job.calendar
    if done_ms > now_ms + SET_BACK_MS:  # the clock was wrong before
        return PeriodicStep(now_ms, enqueues=False, missed=0, next_ms=calendar.next_after(now_ms))
    dues = calendar.between(done_ms, now_ms)
    if dues is None:
        return None
    in_time = now_ms - dues.last_ms <= LATE_MS
    missed = dues.count - 1 if in_time else dues.count
    enqueues = in_time or job.missed is Missed.RUN_ONCE
    return PeriodicStep(dues.last_ms, enqueues, missed, calendar.next_after(dues.last_ms))
