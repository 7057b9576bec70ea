"""Mistakes with schedules: runs that overlap, and due times of which nothing is known."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.chaos.mutants.mutant import edit

from rekindle.actors.facts.runs import Hindrance
from rekindle.actors.rules.schedules import timetable
from rekindle.actors.rules.schedules.timetable import Timetable, TimetableStep
from rekindle.actors.spec.policies.schedule import SchedulePolicy
from rekindle.actors.supervision import on_death, on_schedule
from rekindle.actors.supervision.worker import WorkerStep
from rekindle.actors.supervisor.schedules import Schedules


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


def loses_what_ran_with_the_supervisor(patch: pytest.MonkeyPatch) -> None:
    """A run that ended with its supervisor has no record of that."""
    edit(patch, timetable.recovered, "runs.append(lost)\n", "pass\n")


def does_not_make_up_for_lost_runs(patch: pytest.MonkeyPatch) -> None:
    """A run that ended with its supervisor is not made up for."""
    edit(patch, timetable.recovered, "latest=lost, owed=True)", "latest=lost)")


def makes_up_although_the_schedule_skips(patch: pytest.MonkeyPatch) -> None:
    """`missed` of a schedule is ignored."""
    edit(patch, timetable._made_up, "policy.missed is Missed.SKIP", "False")


def never_makes_up(patch: pytest.MonkeyPatch) -> None:
    """Runs that were missed are never made up for."""
    edit(patch, timetable._made_up, "if not table.owed or", "if True or")


def makes_up_again_and_again(patch: pytest.MonkeyPatch) -> None:
    """What was made up for is owed still."""
    edit(patch, timetable.started, ", owed=False", "")


def owes_nothing_for_a_stopped_run(patch: pytest.MonkeyPatch) -> None:
    """A run that a pause or a shutdown ended is not made up for."""
    edit(patch, timetable.ended, "elif over.reason in MADE_UP:", "elif False:")


def owes_nothing_for_a_run_that_waited(patch: pytest.MonkeyPatch) -> None:
    """A run that a pause kept from starting is not made up for."""
    edit(patch, timetable.dropped, "owed = table.owed or reason in MADE_UP", "owed = table.owed")


def makes_up_for_what_was_stopped(patch: pytest.MonkeyPatch) -> None:
    """What was due while an operator had stopped it is made up for."""
    edit(patch, timetable._unused, "owed=table.owed or reason in MADE_UP", "owed=True")


def forgets_the_jitter(patch: pytest.MonkeyPatch) -> None:
    """Runs start in the moment in which they are due."""
    edit(patch, timetable.is_ready, "now_ms >= table.start_at_ms or", "True or")


def draws_too_much_jitter(patch: pytest.MonkeyPatch) -> None:
    """A run may start twice as late as its jitter allows."""
    edit(patch, timetable.advanced, "* 1000 * chance", "* 1000 * (chance + 1)")


def looks_too_late_for_the_jitter(patch: pytest.MonkeyPatch) -> None:
    """The clock is looked at when the next run is due, not when this one is to start."""
    edit(patch, timetable.next_look_ms, "min(due, table.start_at_ms) if waits else due", "due")


def calls_one_period_overdue(patch: pytest.MonkeyPatch) -> None:
    """A worker is overdue after one period without a success."""
    edit(
        patch,
        timetable._is_overdue,
        "calendar.next_after(calendar.next_after(table.since_ms))",
        "calendar.next_after(table.since_ms)",
    )


def never_calls_it_overdue(patch: pytest.MonkeyPatch) -> None:
    """That a worker does not succeed is never announced."""
    edit(patch, timetable._is_overdue, "if table.overdue or", "if True or")


def calls_it_overdue_again_and_again(patch: pytest.MonkeyPatch) -> None:
    """That a worker does not succeed is announced with each run."""
    edit(patch, timetable._is_overdue, "if table.overdue or", "if")


def worries_about_a_pause(patch: pytest.MonkeyPatch) -> None:
    """What was missed in a pause counts as overdue."""
    edit(patch, timetable._is_overdue, "table.overdue or reason in _WANTED", "table.overdue")


def stays_overdue_after_a_success(patch: pytest.MonkeyPatch) -> None:
    """A worker that was overdue once is never announced as that again."""
    edit(patch, timetable.ended, "succeeded_ms=now_ms, overdue=False", "succeeded_ms=now_ms")


def takes_a_failed_run_for_a_success(patch: pytest.MonkeyPatch) -> None:
    """After a failed run a worker is not overdue."""
    edit(patch, timetable.ended, "succeeded = over.state is RunState.SUCCEEDED", "succeeded = True")


def executes_what_was_due_long_ago(patch: pytest.MonkeyPatch) -> None:
    """A run that is noticed hours late is executed."""
    edit(patch, timetable.advanced, "now_ms - dues.last_ms > LATE_MS", "False")


def waits_until_the_clock_is_back(patch: pytest.MonkeyPatch) -> None:
    """After the clock was set back, nothing is due until it shows the old time again."""
    edit(patch, timetable._on_this_clock, "if table.until_ms - now_ms <= SET_BACK_MS:", "if True:")


def forgets_the_run_that_waits(patch: pytest.MonkeyPatch) -> None:
    """The run that waits for another one never begins."""
    edit(patch, timetable.ended, "current=table.queued,", "current=None,")


def loses_a_replaced_run(patch: pytest.MonkeyPatch) -> None:
    """A run that is replaced before it began has no record of that."""
    edit(patch, timetable._replacement, "runs = (replace(earlier, ended_at_wall_ms=due_ms), run)", "pass")


def queues_any_number_of_runs(patch: pytest.MonkeyPatch) -> None:
    """The run that waits is forgotten when the next one is due."""
    edit(patch, timetable._due, "case Overlap.QUEUE if table.queued is None:", "case Overlap.QUEUE:")


def skips_what_it_should_queue(patch: pytest.MonkeyPatch) -> None:
    """No run waits for another one."""
    edit(patch, timetable._due, "case Overlap.QUEUE if table.queued is None:", "case Overlap.QUEUE if False:")


def ends_lost_runs_at_the_next_start(patch: pytest.MonkeyPatch) -> None:
    """A lost run is said to have lasted until the next supervisor started."""
    edit(
        patch,
        timetable.recovered,
        "min(max(seen_ms, run.started_at_wall_ms or run.due_wall_ms), now_ms)",
        "now_ms",
    )


def carries_the_budget_of_a_run_over(patch: pytest.MonkeyPatch) -> None:
    """The restarts of a run count for the next one."""
    edit(patch, on_schedule._begin_if_ready, "restarts=RestartState(), ", "")


def ends_runs_a_little_late(patch: pytest.MonkeyPatch) -> None:
    """A run may take a twentieth longer than its time limit."""
    edit(patch, on_schedule._overtime, "timeout_s * 1000", "timeout_s * 1050")


def tries_again_what_took_too_long(patch: pytest.MonkeyPatch) -> None:
    """A run that is ended for its time limit is restarted."""
    edit(patch, on_death._in_run, "if table.current.reason is Hindrance.TIMEOUT:", "if False:")


def gives_up_a_scheduled_worker(patch: pytest.MonkeyPatch) -> None:
    """A run that fails ends the schedule."""
    edit(patch, on_death._in_run, "if decision.action is not Action.MARK_FAILED:", "if True:")


def takes_a_failure_for_a_success(patch: pytest.MonkeyPatch) -> None:
    """A run that is given up has succeeded."""
    edit(
        patch,
        on_schedule._over,
        "return replace(run, state=RunState.FAILED, detail=phase.why)",
        "return replace(run, state=RunState.SUCCEEDED)",
    )


def forgets_time_limits_when_it_raises(patch: pytest.MonkeyPatch) -> None:
    """After an exception in the Supervisor no run has a time limit."""
    edit(patch, Schedules.recover, "policy.timeout_s is not None", "False")
