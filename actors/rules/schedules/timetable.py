"""Pure: which runs of a scheduled worker are due, missed, waiting and running.

    due ─▶ waiting ─▶ running ─▶ succeeded | failed | stopped | lost
     └──▶ skipped (another one is running) | missed (supervisor down, paused, stopped …)

Every due time is recorded once: `until_ms` says up to which time that is done. Times are wall-clock
milliseconds; the present and chance are arguments, so a clock that was set is only another present.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from ...facts.runs import Hindrance, Run, RunState, Trigger
from ...spec.calendar import Dues
from ...spec.policies.schedule import Missed, Overlap, SchedulePolicy

LATE_MS = 120_000
"""A due time that is noticed later than this was missed: the supervisor was suspended or the clock set."""

SET_BACK_MS = 3 * 3_600_000
"""Runs are not repeated if the clock is set back by less than this; by more, the clock was wrong before."""

MADE_UP = frozenset(
    {
        Hindrance.SUPERVISOR_DOWN,
        Hindrance.SUPERVISOR_LOST,
        Hindrance.SHUTDOWN,
        Hindrance.LATE,
        Hindrance.PAUSED,
    }
)
"""Reasons after which `missed = "run_once"` wants a run; a worker that was stopped is not meant to run."""

_WANTED = frozenset({Hindrance.PAUSED, Hindrance.STOPPED, Hindrance.SHUTDOWN, Hindrance.CHANGED})
"""Reasons that are an operator's: that nothing succeeds meanwhile is not a problem."""


class Timetable(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of one worker, as far as the next decision depends on them. It is stored as JSON."""

    component_id: str
    plan: str
    """The schedule in words; if it changes, the timetable starts over."""
    until_ms: int
    """Every due time up to this one is recorded."""
    since_ms: int
    """The last success, or the beginning of the schedule."""
    succeeded_ms: int | None = None
    number: int = 0
    """Of the latest row."""
    owed: bool = False
    """Runs were missed that the policy wants to be made up for by one."""
    overdue: bool = False
    """It has not succeeded for two periods, which was announced."""
    current: Run | None = None
    """The run that waits or is running."""
    start_at_ms: int = 0
    """When the current run starts, if it waits."""
    queued: Run | None = None
    """The run that waits for the current one."""
    latest: Run | None = None
    """The latest run that is over."""

    @property
    def is_running(self) -> bool:
        """Whether a run has begun and is not over."""
        return self.current is not None and self.current.state is RunState.RUNNING


class TimetableStep(msgspec.Struct, frozen=True):
    """The timetable afterwards, and the runs that changed, in order."""

    timetable: Timetable
    runs: tuple[Run, ...] = ()
    replaces: bool = False
    """The run that is running must end for the one that waits."""
    is_overdue: bool = False
    """From now on the worker has not succeeded for two periods."""


def begun(component_id: str, policy: SchedulePolicy, now_ms: int) -> Timetable:
    """The timetable of a worker that is scheduled from now on."""
    plan = str(policy.calendar)
    return Timetable(component_id=component_id, plan=plan, until_ms=now_ms, since_ms=now_ms)


def replanned(table: Timetable, policy: SchedulePolicy, now_ms: int) -> Timetable:
    """The timetable under this policy: another schedule counts from now on, and the runs stay."""
    if str(policy.calendar) == table.plan:
        return table
    return resumed(table, policy, now_ms)


def resumed(table: Timetable, policy: SchedulePolicy, now_ms: int) -> Timetable:
    """The timetable counts from now on: what was due until now no longer matters."""
    plan = str(policy.calendar)
    return replace(table, plan=plan, until_ms=now_ms, since_ms=now_ms, owed=False, overdue=False)


def closed(table: Timetable, state: RunState, reason: Hindrance, now_ms: int) -> TimetableStep:
    """The worker no longer has a schedule: what was running or waiting ends so."""
    runs = tuple(
        replace(run, state=state, reason=reason, ended_at_wall_ms=now_ms)
        for run in (table.current, table.queued)
        if run is not None
    )
    latest = runs[-1] if runs else table.latest
    table = replace(table, plan="", current=None, queued=None, latest=latest, owed=False, overdue=False)
    return TimetableStep(table, runs)


def recovered(table: Timetable, policy: SchedulePolicy, now_ms: int, seen_ms: int) -> TimetableStep:
    """A new supervisor: what was running or waiting is lost, what was due meanwhile is missed.

    Args:
        table: as the former supervisor stored it.
        policy: the present one.
        now_ms: the present.
        seen_ms: the last sign of life of the former supervisor.
    """
    runs = []
    for run in (table.current, table.queued):
        if run is not None:
            ended = min(max(seen_ms, run.started_at_wall_ms or run.due_wall_ms), now_ms)
            lost = replace(run, state=RunState.LOST, reason=Hindrance.SUPERVISOR_LOST, ended_at_wall_ms=ended)
            table = replace(table, current=None, queued=None, latest=lost, owed=True)
            runs.append(lost)
    table = replanned(_on_this_clock(table, now_ms), policy, now_ms)
    dues = policy.calendar.between(table.until_ms, now_ms)
    if dues is None:
        return TimetableStep(table, tuple(runs))
    step = _unused(table, policy, dues, RunState.MISSED, Hindrance.SUPERVISOR_DOWN)
    return replace(step, runs=(*runs, *step.runs))


def advanced(
    table: Timetable, policy: SchedulePolicy, now_ms: int, hindrance: Hindrance | None, chance: float
) -> TimetableStep:
    """Record what is due by now; `hindrance` is why the worker cannot run, if it cannot."""
    table = _on_this_clock(table, now_ms)
    dues = policy.calendar.between(table.until_ms, now_ms)
    if dues is None:
        return _made_up(table, policy, now_ms) if hindrance is None else TimetableStep(table)
    if hindrance is not None:
        return _unused(table, policy, dues, RunState.MISSED, hindrance)
    if now_ms - dues.last_ms > LATE_MS:
        step = _unused(table, policy, dues, RunState.MISSED, Hindrance.LATE)
        return _joined(step, _made_up(step.timetable, policy, now_ms))
    earlier = policy.calendar.between(table.until_ms, dues.last_ms - 1)
    step = TimetableStep(table)
    if earlier is not None:
        step = _unused(table, policy, earlier, RunState.MISSED, Hindrance.LATE)
    start_at = dues.last_ms + round(policy.jitter_s * 1000 * chance)
    return _joined(step, _due(step.timetable, policy, Trigger.CLOCK, dues.last_ms, start_at))


def requested(table: Timetable, policy: SchedulePolicy, now_ms: int) -> TimetableStep:
    """An operator wants a run now; a run that is running makes it wait, or is replaced."""
    return _due(table, policy, Trigger.OPERATOR, now_ms, now_ms)


def is_ready(table: Timetable, now_ms: int) -> bool:
    """Whether the current run waits no longer."""
    run = table.current
    if run is None or run.state is not RunState.WAITING:
        return False
    # However far the clock is set back meanwhile, a run does not wait until it has caught up.
    return now_ms >= table.start_at_ms or now_ms < run.due_wall_ms


def started(table: Timetable, now_ms: int) -> TimetableStep:
    """The current run begins."""
    assert table.current is not None
    run = replace(table.current, state=RunState.RUNNING, started_at_wall_ms=now_ms)
    return TimetableStep(replace(table, current=run, owed=False), (run,))


def ended(table: Timetable, policy: SchedulePolicy | None, over: Run, now_ms: int) -> TimetableStep:
    """The current run is over, as `over` says; the one that waits for it is next."""
    over = replace(over, ended_at_wall_ms=now_ms)
    succeeded = over.state is RunState.SUCCEEDED
    table = replace(table, current=table.queued, start_at_ms=now_ms, queued=None, latest=over)
    if succeeded:
        table = replace(table, since_ms=now_ms, succeeded_ms=now_ms, overdue=False)
    elif over.reason in MADE_UP:
        table = replace(table, owed=True)
    overdue = (
        policy is not None and not succeeded and _is_overdue(table, policy, over.due_wall_ms, over.reason)
    )
    return TimetableStep(replace(table, overdue=table.overdue or overdue), (over,), is_overdue=overdue)


def dropped(table: Timetable, reason: Hindrance, now_ms: int) -> TimetableStep:
    """The run that is next is not executed, because the worker was stopped, paused or changed."""
    runs = tuple(
        replace(run, state=RunState.MISSED, reason=reason, ended_at_wall_ms=now_ms)
        for run in (table.current, table.queued)
        if run is not None and run.state is RunState.WAITING
    )
    if not runs:
        return TimetableStep(table)
    current = table.current if table.is_running else None
    owed = table.owed or reason in MADE_UP
    return TimetableStep(replace(table, current=current, queued=None, latest=runs[-1], owed=owed), runs)


def next_look_ms(table: Timetable, policy: SchedulePolicy, now_ms: int) -> int:
    """When there is something to do next."""
    due = policy.calendar.next_after(max(table.until_ms, now_ms))
    waits = table.current is not None and table.current.state is RunState.WAITING
    return min(due, table.start_at_ms) if waits else due


# ── how ──────────────────────────────────────────────────────────────────────────────────


def _on_this_clock(table: Timetable, now_ms: int) -> Timetable:
    """The timetable after the clock was set far back: what it recorded lies in no future that will come."""
    if table.until_ms - now_ms <= SET_BACK_MS:
        return table
    return replace(table, until_ms=now_ms, since_ms=min(table.since_ms, now_ms))


def _due(
    table: Timetable, policy: SchedulePolicy, trigger: Trigger, due_ms: int, start_at_ms: int
) -> TimetableStep:
    """A run is due and the worker can run: it waits for its start, or for the one before it."""
    if trigger is not Trigger.OPERATOR:
        table = replace(table, until_ms=max(table.until_ms, due_ms))
    if table.current is None:
        run = _row(table, RunState.WAITING, due_ms, trigger)
        table = replace(table, current=run, start_at_ms=start_at_ms, number=run.number)
        return TimetableStep(table, (run,))
    one = Dues(1, due_ms, due_ms)
    match policy.overlap:
        case Overlap.QUEUE if table.queued is None:
            run = _row(table, RunState.WAITING, due_ms, trigger)
            return TimetableStep(replace(table, queued=run, number=run.number), (run,))
        case Overlap.REPLACE:
            return _replacement(table, due_ms, trigger)
        case Overlap.SKIP | Overlap.QUEUE:
            return _unused(table, policy, one, RunState.SKIPPED, Hindrance.OVERLAP)


def _replacement(table: Timetable, due_ms: int, trigger: Trigger) -> TimetableStep:
    run = _row(table, RunState.WAITING, due_ms, trigger)
    runs: tuple[Run, ...] = (run,)
    if table.queued is not None:  # the one before it has not ended yet
        earlier = replace(table.queued, state=RunState.SKIPPED, reason=Hindrance.REPLACED)
        runs = (replace(earlier, ended_at_wall_ms=due_ms), run)
    return TimetableStep(replace(table, queued=run, number=run.number), runs, replaces=True)


def _made_up(table: Timetable, policy: SchedulePolicy, now_ms: int) -> TimetableStep:
    """One run in the place of those that were missed, if the policy wants it."""
    if not table.owed or policy.missed is Missed.SKIP or table.current is not None:
        return TimetableStep(table)
    run = _row(table, RunState.WAITING, now_ms, Trigger.CATCH_UP)
    return TimetableStep(replace(table, current=run, start_at_ms=now_ms, number=run.number), (run,))


def _unused(
    table: Timetable, policy: SchedulePolicy, dues: Dues, state: RunState, reason: Hindrance
) -> TimetableStep:
    """Due times at which the worker does not run: one row, or more of the row before."""
    last = table.latest
    if last is not None and (last.number, last.state, last.reason) == (table.number, state, reason):
        run = replace(last, times=last.times + dues.count, last_due_wall_ms=dues.last_ms)
    else:
        run = _row(table, state, dues.first_ms, Trigger.CLOCK)
        several = dues.last_ms if dues.count > 1 else None
        run = replace(run, reason=reason, times=dues.count, last_due_wall_ms=several)
    overdue = _is_overdue(table, policy, dues.last_ms, reason)
    table = replace(
        table,
        until_ms=max(table.until_ms, dues.last_ms),
        number=run.number,
        latest=run,
        owed=table.owed or reason in MADE_UP,
        overdue=table.overdue or overdue,
    )
    return TimetableStep(table, (run,), is_overdue=overdue)


def _row(table: Timetable, state: RunState, due_ms: int, trigger: Trigger) -> Run:
    number = table.number + 1
    return Run(
        component_id=table.component_id, number=number, state=state, trigger=trigger, due_wall_ms=due_ms
    )


def _is_overdue(table: Timetable, policy: SchedulePolicy, due_ms: int, reason: Hindrance | None) -> bool:
    """Whether this is the second due time in a row without a success, and the first that is told of."""
    if table.overdue or reason in _WANTED:
        return False
    calendar = policy.calendar
    return due_ms >= calendar.next_after(calendar.next_after(table.since_ms))


def _joined(first: TimetableStep, then: TimetableStep) -> TimetableStep:
    return replace(then, runs=(*first.runs, *then.runs), is_overdue=first.is_overdue or then.is_overdue)
