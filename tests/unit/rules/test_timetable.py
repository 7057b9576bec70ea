"""Which runs of a scheduled worker are due, missed, waiting and running, as decisions."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from rekindle.actors.facts.runs import Hindrance, Run, RunState, Trigger
from rekindle.actors.rules.schedules import timetable as timetables
from rekindle.actors.rules.schedules.timetable import (
    LATE_MS,
    SET_BACK_MS,
    Timetable,
    TimetableStep,
    advanced,
    begun,
    recovered,
    started,
)
from rekindle.actors.spec.policies.schedule import SchedulePolicy

MINUTE = 60_000
T = 1_800_000_000_000
"""A due time: a multiple of ten minutes."""
PERIOD = 10 * MINUTE


def policy(**changes: Any) -> SchedulePolicy:
    return SchedulePolicy(every="10m", **changes)


def at(table: Timetable, now_ms: int, hindrance: Hindrance | None = None, **changes: Any) -> TimetableStep:
    """What a look at the clock records."""
    return advanced(table, policy(**changes), now_ms, hindrance, 0.5)


def running(**changes: Any) -> Timetable:
    """The run that was due at T is running."""
    due = at(begun("w", policy(**changes), T - MINUTE), T, **changes)
    return started(due.timetable, T).timetable


def told(step: TimetableStep) -> list[str]:
    return [f"{run.number} {run.state}" + (f" {run.reason}" if run.reason else "") for run in step.runs]


# ── due ──────────────────────────────────────────────────────────────────────────────────


def test_a_due_time_is_recorded_once_at_the_moment_and_not_before() -> None:
    table = begun("w", policy(), T - MINUTE)
    assert at(table, T - 1).runs == ()
    step = at(table, T)
    assert told(step) == ["1 waiting"]
    assert (step.runs[0].due_wall_ms, step.runs[0].trigger) == (T, Trigger.CLOCK)
    assert at(step.timetable, T + MINUTE).runs == ()


def test_jitter_delays_the_start_and_not_what_is_due() -> None:
    table = at(begun("w", policy(), T - MINUTE), T, jitter_s=60).timetable
    assert (table.start_at_ms, table.until_ms) == (T + MINUTE // 2, T)
    assert not timetables.is_ready(table, T + MINUTE // 2 - 1)
    assert timetables.is_ready(table, T + MINUTE // 2)
    assert timetables.next_look_ms(table, policy(jitter_s=60), T) == T + MINUTE // 2


# ── missed ───────────────────────────────────────────────────────────────────────────────


def test_runs_that_are_missed_in_a_row_are_one_row_with_their_number() -> None:
    table = begun("w", policy(), T - MINUTE)
    for number in range(3):
        step = at(table, T + number * PERIOD, Hindrance.STOPPED)
        table = step.timetable
    (row,) = step.runs
    assert told(step) == ["1 missed stopped"]
    assert (row.times, row.due_wall_ms, row.last_due_wall_ms) == (3, T, T + 2 * PERIOD)


@pytest.mark.parametrize(
    ("missed", "reason", "then"),
    [
        ("run_once", Hindrance.PAUSED, ["2 waiting"]),
        ("run_once", Hindrance.STOPPED, []),
        ("skip", Hindrance.PAUSED, []),
    ],
)
def test_one_run_makes_up_for_missed_ones_if_the_policy_and_the_reason_want_it(
    missed: str, reason: Hindrance, then: list[str]
) -> None:
    table = at(begun("w", policy(), T - MINUTE), T + PERIOD, reason).timetable
    assert told(at(table, T + PERIOD + MINUTE, missed=missed)) == then


def test_a_due_time_that_is_noticed_too_late_was_missed() -> None:
    table = begun("w", policy(), T - MINUTE)
    assert told(at(table, T + LATE_MS)) == ["1 waiting"]
    late = at(table, T + LATE_MS + 1)
    assert told(late) == ["1 missed late", "2 waiting"]
    assert late.runs[1].trigger is Trigger.CATCH_UP


def test_after_a_sleep_that_ends_at_a_due_time_the_earlier_ones_are_missed() -> None:
    step = at(begun("w", policy(), T - MINUTE), T + 2 * PERIOD)
    assert told(step) == ["1 missed late", "2 waiting"]
    assert (step.runs[0].times, step.runs[1].due_wall_ms) == (2, T + 2 * PERIOD)


def test_a_new_supervisor_loses_the_run_that_was_running_and_knows_what_was_due_meanwhile() -> None:
    step = recovered(running(), policy(), T + 3 * PERIOD + MINUTE, seen_ms=T + MINUTE)
    assert told(step) == ["1 lost supervisor_lost", "2 missed supervisor_down"]
    assert (step.runs[0].ended_at_wall_ms, step.runs[1].times) == (T + MINUTE, 3)
    assert step.timetable.owed


# ── overlap ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("overlap", "first", "second", "replaces"),
    [
        ("skip", ["2 skipped overlap"], ["2 skipped overlap"], False),
        ("queue", ["2 waiting"], ["3 skipped overlap"], False),
        ("replace", ["2 waiting"], ["2 skipped replaced", "3 waiting"], True),
    ],
)
def test_a_run_that_is_due_while_another_is_running(
    overlap: str, first: list[str], second: list[str], replaces: bool
) -> None:
    one = at(running(overlap=overlap), T + PERIOD, overlap=overlap)
    two = at(one.timetable, T + 2 * PERIOD, overlap=overlap)
    assert (told(one), told(two)) == (first, second)
    assert (one.replaces, two.replaces) == (replaces, replaces)
    assert two.timetable.is_running
    assert two.timetable.until_ms == T + 2 * PERIOD


def test_the_run_that_waits_is_next_when_the_one_before_it_ends() -> None:
    table = at(running(overlap="queue"), T + PERIOD, overlap="queue").timetable
    ended = timetables.ended(table, policy(), over(table), T + PERIOD + MINUTE).timetable
    assert ended.current is not None
    assert (ended.current.number, ended.queued) == (2, None)
    assert timetables.is_ready(ended, T + PERIOD + MINUTE)


def over(table: Timetable, state: RunState = RunState.SUCCEEDED) -> Run:
    assert table.current is not None
    return replace(table.current, state=state)


# ── a clock that was set ─────────────────────────────────────────────────────────────────


def test_a_clock_that_is_set_back_a_little_repeats_nothing() -> None:
    table = timetables.ended(running(), policy(), over(running()), T + MINUTE).timetable
    back = T - SET_BACK_MS
    assert at(table, back).runs == ()
    assert at(table, T).runs == ()
    assert told(at(table, T + PERIOD)) == ["2 waiting"]
    assert timetables.next_look_ms(table, policy(), back) == T + PERIOD


def test_a_clock_that_is_set_back_far_was_wrong_before_and_the_schedule_counts_from_there() -> None:
    table = timetables.ended(running(), policy(), over(running()), T + MINUTE).timetable
    back = T - SET_BACK_MS - PERIOD
    step = at(table, back)
    assert (step.runs, step.timetable.until_ms, step.timetable.since_ms) == ((), back, back)
    assert told(at(step.timetable, back + PERIOD)) == ["2 waiting"]


def test_a_run_that_waits_for_its_jitter_does_not_wait_for_a_clock_that_was_set_back() -> None:
    table = at(begun("w", policy(), T - MINUTE), T, jitter_s=60).timetable
    assert timetables.is_ready(table, T - PERIOD)


# ── overdue ──────────────────────────────────────────────────────────────────────────────


def test_the_second_due_time_without_a_success_is_announced_once() -> None:
    table = begun("w", policy(), T - MINUTE)
    announced = []
    for number in range(4):
        now = T + number * PERIOD
        table = started(at(table, now).timetable, now).timetable
        step = timetables.ended(table, policy(), over(table, RunState.FAILED), now + MINUTE)
        table = step.timetable
        announced.append(step.is_overdue)
    assert announced == [False, True, False, False]
    assert table.overdue
    assert not timetables.replanned(table, SchedulePolicy(every="1h"), T + 5 * PERIOD).overdue
