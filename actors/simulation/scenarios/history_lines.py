"""Pure: a history as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...deaths.death import Exit, signal_name
from .history import (
    Announced,
    AnyEntry,
    Asked,
    Concluded,
    ConditionMet,
    Counted,
    DatabaseChanged,
    Decided,
    Ended,
    EventPublished,
    EventsStored,
    FinalReport,
    Heard,
    HostResumed,
    Idled,
    Moved,
    Ordered,
    Overlapped,
    ProbeAnswerHeard,
    SpawnBegun,
    Spawned,
    SpawnRefused,
    Stored,
    StreakEnded,
    SupervisorEnded,
    SupervisorStarted,
    TimerDropped,
    TimerFired,
    TimerSet,
)
from .jobs.job_entries import (
    JobAdded,
    JobAnswered,
    JobBegun,
    JobCancelAsked,
    JobClaimed,
    JobEntry,
    JobExpired,
    JobKept,
    JobReleased,
    JobSaved,
    QueueLimited,
    QueuePauseBegan,
    QueuePauseEnded,
)
from .run_entries import RunRecorded


def lines(entries: Iterable[AnyEntry], *, every: bool = True) -> Iterator[str]:
    """One line for each entry: when, which worker, what. Without `every`, only the most important ones."""
    for entry in entries:
        if every or isinstance(entry, _TELLING):
            yield line(entry)


def line(entry: AnyEntry) -> str:
    """One entry: when, which worker, what."""
    who = getattr(entry, "worker", None) or "-"
    return f"{entry.at:>12.3f}  {who:<24} {_what(entry)}"


_TELLING = (
    SupervisorStarted, SupervisorEnded, Ordered, Moved, SpawnBegun, Spawned, SpawnRefused, Overlapped, Ended,
    Decided, Concluded,
)  # fmt: skip


def _what(entry: AnyEntry) -> str:
    match entry:
        case SupervisorStarted(life=life):
            return f"supervisor {life} starts"
        case SupervisorEnded(life=life, killed=killed):
            return f"supervisor {life} {'is killed' if killed else 'has stopped'}"
        case Ordered(order=order, for_s=for_s, urgency=urgency):
            how = ("", ", firmly", ", by SIGKILL")[urgency]
            return f"operator: {order}{how}" + ("" if for_s is None else f" for {for_s:g} s")
        case Moved(number=number, what=what):
            return f"move {number}: {what}"
        case SpawnBegun(generation=generation):
            return f"#{generation} is being started"
        case Spawned(generation=generation, pid=pid):
            return f"#{generation} starts, pid {pid}"
        case SpawnRefused(generation=generation, error=error):
            return f"#{generation} cannot be started: {error}"
        case Overlapped(pid=pid):
            return f"pid {pid} finds another process of the same worker"
        case Ended(generation=generation, code=code, signal=signal, by=by):
            return f"#{generation} {Exit(code, signal)} ({by})"
        case FinalReport(shown=shown, restart_count=restarts, alive=alive):
            return f"is {shown} after {restarts} restarts, {'alive' if alive else 'without a process'}"
        case Counted(restart_count=restarts, streak_count=streak, failed=failed):
            return f"the store has {restarts} restarts, streak {streak}{', failed' if failed else ''}"
        case HostResumed(slept_s=slept):
            return f"the host resumes after {slept:g} s"
        case EventsStored(numbers=numbers):
            return f"stored events {numbers[0]} to {numbers[-1]}"
        case DatabaseChanged(state=state):
            return f"the database is {state}"
        case Concluded(left=left):
            return f"end of the run; processes left over: {', '.join(left) or 'none'}"
        case QueuePauseBegan(queue=queue):
            return f"the queue {queue} is paused"
        case QueuePauseEnded(queue=queue):
            return f"the queue {queue} is resumed"
        case QueueLimited(queue=queue):
            return f"the queue {queue} is limited"
        case RunRecorded(number=number, state=state, reason=reason, times=times):
            many = "" if times == 1 else f", {times} due times"
            return f"run {number} is {state}{'' if reason is None else f': {reason}'}{many}"
        case _:
            return _of_job(entry) if isinstance(entry, JobEntry) else _detail(entry)


def _of_job(entry: JobEntry) -> str:
    match entry:
        case JobAdded(job=job, queue=queue):
            return f"job {job} is put into {queue}"
        case JobClaimed(generation=generation, job=job, attempt=attempt):
            return f"#{generation} claims job {job}, attempt {attempt}"
        case JobBegun(generation=generation, job=job, attempt=attempt):
            return f"#{generation} begins job {job}, attempt {attempt}"
        case JobSaved(generation=generation, job=job, checkpoint=checkpoint, accepted=accepted):
            word = "accepted" if accepted else "refused"
            return f"the checkpoint {checkpoint} of #{generation} for job {job} is {word}"
        case JobAnswered(generation=generation, job=job, attempt=attempt, state=state, accepted=accepted):
            word = "accepted" if accepted else "refused"
            return f"#{generation} says that job {job} is {state}, attempt {attempt}: {word}"
        case JobReleased(generation=generation, job=job, state=state, crash_count=crashes):
            return f"job {job} of #{generation} is released: {state}, {crashes} crashes"
        case JobKept(job=job, state=state, attempts=attempts, crash_count=crashes):
            return f"the store has job {job}: {state}, {attempts} attempts, {crashes} crashes"
        case JobExpired(job=job):
            return f"job {job} has expired"
        case JobCancelAsked(job=job, state=state):
            return f"job {job} is cancelled: it is {state}"


def _detail(
    entry: Decided
    | StreakEnded
    | Stored
    | Announced
    | Asked
    | Idled
    | Heard
    | ConditionMet
    | ProbeAnswerHeard
    | EventPublished
    | TimerSet
    | TimerDropped
    | TimerFired,
) -> str:
    match entry:
        case Asked(generation=generation, signal=signal):
            return f"#{generation} is {'asked to stop' if signal is None else f'sent {signal_name(signal)}'}"
        case Idled(generation=generation, idle=idle):
            return f"#{generation} is told to {'idle' if idle else 'continue'}"
        case Heard(generation=generation, status=status):
            return f"#{generation} says {status}"
        case ConditionMet(generation=generation, condition=condition):
            return f"#{generation} meets its condition {condition}"
        case ProbeAnswerHeard(generation=generation, is_good=is_good):
            return f"#{generation} {'passes' if is_good else 'fails'} its probe"
        case Decided(generation=generation, cause=cause, action=action, delay_ms=delay):
            wait = f" in {delay / 1000:g} s" if action.startswith("restart") else ""
            return f"#{generation} died: {cause}; decided: {action}{wait}"
        case StreakEnded():
            return "streak cleared: healthy for long enough"
        case Stored(kind=kind, generation=generation, action=action):
            return f"stored {kind}" + (f" of #{generation}: {action}" if action else "")
        case (
            Announced(event=event, generation=generation, old=old, new=new)
            | EventPublished(event=event, generation=generation, old=old, new=new)
        ):
            return (
                f"{'announces' if isinstance(entry, Announced) else 'event'} {event}"
                + (f" #{generation}" if generation else "")
                + (f" {old} > {new}" if new else "")
            )
        case TimerSet(generation=generation, due=due):
            return f"restart after #{generation} pending until {due:.3f}"
        case TimerDropped(generation=generation):
            return f"restart after #{generation} cancelled"
        case TimerFired(generation=generation):
            return f"restart after #{generation} is due"
