"""Mistakes with schedules: runs that overlap, and due times of which nothing is known."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from rekindle.actors.facts.runs import Hindrance
from rekindle.actors.rules.schedules import timetable
from rekindle.actors.rules.schedules.timetable import Timetable, TimetableStep
from rekindle.actors.spec.policies.schedule import SchedulePolicy
from rekindle.actors.supervision import on_schedule
from rekindle.actors.supervision.worker import WorkerStep


def begins_a_run_beside_another(patch: pytest.MonkeyPatch) -> None:
    """A run that is due begins, whether another is running or not."""
    right = timetable._due

    def due(table: Timetable, *args: Any) -> TimetableStep:
        return right(replace(table, current=None), *args)

    patch.setattr(timetable, "_due", due)


def forgets_what_was_due_without_a_supervisor(patch: pytest.MonkeyPatch) -> None:
    """A new supervisor begins with the present."""

    def recovered(table: Timetable, _policy: SchedulePolicy, now_ms: int, _seen_ms: int) -> TimetableStep:
        return TimetableStep(replace(table, current=None, queued=None, until_ms=now_ms))

    patch.setattr(timetable, "recovered", recovered)


def forgets_what_was_due_during_a_pause(patch: pytest.MonkeyPatch) -> None:
    """What a paused worker misses is not recorded."""
    right = timetable._unused

    def unused(table: Timetable, *args: Any) -> TimetableStep:
        step = right(table, *args)
        if args[-1] is not Hindrance.PAUSED:
            return step
        return TimetableStep(replace(table, until_ms=step.timetable.until_ms))

    patch.setattr(timetable, "_unused", unused)


def never_looks_at_the_clock_again(patch: pytest.MonkeyPatch) -> None:
    """After its first look the Supervisor sets no further timer."""
    patch.setattr("rekindle.actors.supervisor.schedules.Schedules._arm", lambda self: None)


def never_ends_a_run_that_takes_too_long(patch: pytest.MonkeyPatch) -> None:
    """`timeout_s` of a schedule is not enforced."""
    patch.setattr(on_schedule, "overtime", lambda worker, _number: WorkerStep(worker))


def lets_a_replaced_run_go_on(patch: pytest.MonkeyPatch) -> None:
    """With `overlap = "replace"`, the next run waits for the end of the one before it."""
    patch.setattr(on_schedule, "_replace", WorkerStep)
