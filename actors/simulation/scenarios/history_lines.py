"""Pure: a history as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...deaths.death import Exit
from .history import (
    AnyEntry,
    Concluded,
    Counted,
    Decided,
    Ended,
    EventPublished,
    Moved,
    Ordered,
    Overlapped,
    Reported,
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


def lines(entries: Iterable[AnyEntry], *, every: bool = True) -> Iterator[str]:
    """One line for each entry: when, which worker, what. Without `every`, only the most important ones."""
    for entry in entries:
        if every or isinstance(entry, _TELLING):
            who = getattr(entry, "worker", None) or "-"
            yield f"{entry.at:>12.3f}  {who:<24} {_what(entry)}"


_TELLING = (
    SupervisorStarted, SupervisorEnded, Ordered, Moved, Spawned, SpawnRefused, Overlapped, Ended, Decided,
    Concluded,
)  # fmt: skip


def _what(entry: AnyEntry) -> str:
    match entry:
        case SupervisorStarted(life=life):
            return f"supervisor {life} starts"
        case SupervisorEnded(life=life, killed=killed):
            return f"supervisor {life} {'is killed' if killed else 'has stopped'}"
        case Ordered(order=order, for_s=for_s):
            return f"operator: {order}" + ("" if for_s is None else f" for {for_s:g} s")
        case Moved(number=number, what=what):
            return f"move {number}: {what}"
        case Spawned(generation=generation, pid=pid):
            return f"#{generation} starts, pid {pid}"
        case SpawnRefused(generation=generation, error=error):
            return f"#{generation} cannot be started: {error}"
        case Overlapped(pid=pid):
            return f"pid {pid} finds another process of the same worker"
        case Ended(generation=generation, code=code, signal=signal, by=by):
            return f"#{generation} {Exit(code, signal)} ({by})"
        case Reported(shown=shown, restart_count=restarts, alive=alive):
            return f"is {shown} after {restarts} restarts, {'alive' if alive else 'without a process'}"
        case Counted(restart_count=restarts, streak_count=streak, failed=failed):
            return f"the store has {restarts} restarts, streak {streak}{', failed' if failed else ''}"
        case Concluded(left=left):
            return f"end of the run; processes left over: {', '.join(left) or 'none'}"
        case _:
            return _detail(entry)


def _detail(
    entry: Decided | StreakEnded | Stored | EventPublished | TimerSet | TimerDropped | TimerFired,
) -> str:
    match entry:
        case Decided(generation=generation, cause=cause, action=action, delay_ms=delay):
            wait = f" in {delay / 1000:g} s" if action == "restart" else ""
            return f"#{generation} died: {cause}; decided: {action}{wait}"
        case StreakEnded():
            return "streak cleared: healthy for long enough"
        case Stored(kind=kind, generation=generation, action=action):
            return f"stored {kind}" + (f" of #{generation}: {action}" if action else "")
        case EventPublished(event=event, generation=generation, old=old, new=new):
            return (
                f"event {event}"
                + (f" #{generation}" if generation else "")
                + (f" {old} > {new}" if new else "")
            )
        case TimerSet(generation=generation, due=due):
            return f"restart after #{generation} pending until {due:.3f}"
        case TimerDropped(generation=generation):
            return f"restart after #{generation} cancelled"
        case TimerFired(generation=generation):
            return f"restart after #{generation} is due"
