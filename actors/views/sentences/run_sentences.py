"""Pure: the words of the events about the runs of scheduled workers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from rekindle.worker.plain_text import span

from ...facts.runs import Hindrance, Run, RunState, Trigger
from ...messages import (
    RunDue,
    RunEvent,
    RunFailed,
    RunMissed,
    RunOverdue,
    RunSkipped,
    RunStarted,
    RunStopped,
    RunSucceeded,
    ScheduleChanged,
    ScheduleStatus,
)
from .sentence import Level, Sentence


def run_sentence(event: RunEvent) -> Sentence:
    """What an event about the runs of a worker says; the name of the worker is shown before it."""
    match event:
        case RunDue(run=run, trigger=trigger, due_wall_ms=due):
            return Sentence("run", f"is due: run {run}{_trigger(trigger, due)}", Level.DEBUG)
        case RunStarted(run=run, trigger=trigger, due_wall_ms=due):
            return Sentence("run", f"began run {run}{_trigger(trigger, due)}")
        case RunSucceeded(run=run, duration_ms=duration, attempts=attempts):
            tries = f", with {attempts} attempts" if attempts > 1 else ""
            return Sentence("run", f"completed run {run} in {span(duration)}{tries}", Level.SUCCESS)
        case RunFailed(run=run, reason=reason):
            return Sentence("run", f"failed run {run}: {reason}", Level.ERROR)
        case RunStopped(run=run, reason=reason):
            return Sentence("run", f"ended run {run} early: {hindrance_words(reason)}", Level.WARNING)
        case RunSkipped(due_wall_ms=due, reason=reason, times=times):
            what = _runs(due, due, times)
            return Sentence("run", f"skipped {what}: {hindrance_words(reason)}", Level.WARNING)
        case RunMissed(due_wall_ms=first, last_due_wall_ms=last, reason=reason, times=times):
            what = _runs(first, last, times)
            return Sentence("run", f"missed {what}: {hindrance_words(reason)}", Level.WARNING)
        case RunOverdue(since_wall_ms=since, ever=ever):
            return Sentence("run", overdue_words(since, ever), Level.ERROR)
        case ScheduleChanged(plan=plan):
            return Sentence("run", f"has another schedule: {plan}" if plan else "no longer has a schedule")


def schedule_sentences(schedule: ScheduleStatus) -> Iterator[str]:
    """What the schedule of a worker says, and how its latest run ended."""
    due, left = moment(schedule.next_due_wall_ms), span(schedule.next_in_s * 1000)
    yield f"Its schedule is {schedule.plan}; the next run is due in {left}, at {due}."
    run = schedule.current
    if run is not None:
        began = "" if run.started_at_wall_ms is None else f" since {moment(run.started_at_wall_ms)}"
        yield f"Run {run.number} is {run.state.value}{began}."
    last = schedule.last
    if last is not None:
        yield f"Its last run ({last.number}) {_last_words(last)}."
    if schedule.overdue:
        yield "It has not succeeded for two periods."


def _last_words(run: Run) -> str:
    match run.state:
        case RunState.SUCCEEDED:
            return f"succeeded at {moment(run.ended_at_wall_ms or 0)} in {span(run.duration_ms or 0)}"
        case RunState.MISSED | RunState.SKIPPED:
            what = "was" if run.times == 1 else f"and {run.times - 1} after it were"
            return f"{what} {run.state.value}: {hindrance_words(run.reason or Hindrance.OVERLAP)}"
        case _:
            why = run.detail or ("" if run.reason is None else hindrance_words(run.reason))
            return f"{run.state.value} at {moment(run.ended_at_wall_ms or 0)}" + (f": {why}" if why else "")


def overdue_words(since_wall_ms: int, ever: bool) -> str:
    """That a worker has not succeeded for long."""
    since = "its last success was at" if ever else "it has never succeeded, and is scheduled since"
    return f"has not succeeded for two periods: {since} {moment(since_wall_ms)}"


def _runs(first_ms: int, last_ms: int, times: int) -> str:
    if times == 1:
        return f"the run that was due at {moment(first_ms)}"
    until = f" to {moment(last_ms)}" if last_ms != first_ms else ""
    return f"{times} runs from {moment(first_ms)}{until}"


def _trigger(trigger: Trigger, due_wall_ms: int) -> str:
    match trigger:
        case Trigger.CLOCK:
            return f", due at {moment(due_wall_ms)}"
        case Trigger.CATCH_UP:
            return ", in place of those that were missed"
        case Trigger.OPERATOR:
            return ", as an operator ordered"


def moment(wall_ms: int) -> str:
    """A time in UTC, as sentences show it."""
    return f"{datetime.fromtimestamp(wall_ms // 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def hindrance_words(reason: Hindrance) -> str:
    """Why a run was not executed, or ended early."""
    match reason:
        case Hindrance.SUPERVISOR_DOWN:
            return "the supervisor was not running"
        case Hindrance.SUPERVISOR_LOST:
            return "its supervisor ended without notice"
        case Hindrance.SHUTDOWN:
            return "the supervisor is shutting down"
        case Hindrance.OVERLAP:
            return "another run was still running"
        case Hindrance.REPLACED:
            return "the next run replaces it"
        case Hindrance.PAUSED:
            return "the worker is paused"
        case Hindrance.STOPPED:
            return "the worker is stopped"
        case Hindrance.GROUP:
            return "its group is given up"
        case Hindrance.LATE:
            return "the supervisor was suspended, or its clock was set"
        case Hindrance.TIMEOUT:
            return "it took too long"
        case Hindrance.CHANGED:
            return "its configuration changed"
