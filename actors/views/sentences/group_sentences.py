"""Pure: the words of the events about groups of workers."""

from __future__ import annotations

from rekindle.worker.plain_text import span

from ...messages import (
    EssentialEnded,
    GroupEscalated,
    GroupEvent,
    GroupGivenUp,
    GroupRestarting,
    GroupRestored,
    GroupStatus,
)
from .sentence import Level, Sentence


def group_sentence(event: GroupEvent) -> Sentence:
    """What an event about the groups of a worker says; the name of the worker is shown before it."""
    match event:
        case GroupRestarting(group=group, workers=workers, used=used, allowed=allowed):
            budget = "" if allowed is None else f", restart {used} of {allowed} in its window"
            text = f"restarts together with {', '.join(workers)} (group {group}{budget})"
            return Sentence("group", text, Level.WARNING)
        case GroupGivenUp(group=group, reason=reason, workers=workers):
            text = f"was the last to die: group {group} is given up{_others_stop(len(workers))}: {reason}"
            return Sentence("group", text, Level.ERROR)
        case GroupEscalated(group=group, to=to, reason=reason):
            text = f"was the last to die: group {group} restarts as a member of group {to}: {reason}"
            return Sentence("group", text, Level.ERROR)
        case GroupRestored(group=group):
            return Sentence("group", f"is back: group {group} starts again", Level.SUCCESS)
        case EssentialEnded(group=group, reason=reason, exit_code=code):
            what = f"ended the essential group {group}" if group else "is essential and has ended"
            text = f"{what}: everything stops with exit code {code}: {reason}"
            return Sentence("group", text, Level.CRITICAL)


def group_words(group: GroupStatus) -> str:
    """What the explanation of a member says about its group."""
    what = f"It belongs to group {group.name} ({group.strategy}: {', '.join(group.members)})"
    if group.given_up is not None:
        return f"{what}, which is given up because of {group.because}."
    allowed = "" if group.max_in_window is None else f" of {group.max_in_window}"
    return f"{what}, which has used {group.used}{allowed} restarts within {span(group.window_s * 1000)}."


def _others_stop(count: int) -> str:
    if not count:
        return ""
    return ", and 1 other worker stops" if count == 1 else f", and {count} other workers stop"
