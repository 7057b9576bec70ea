"""Pure: the words of the events about a queue as a whole."""

from __future__ import annotations

from rekindle.worker.plain_text import counted, span

from ...messages import PeriodicEnqueued, PeriodicMissed, QueueEvent, QueuePaused, QueueResumed
from .run_sentences import moment
from .sentence import Level, Sentence


def queue_sentence(event: QueueEvent) -> Sentence:
    """What an event about a queue says."""
    match event:
        case QueuePaused(queue=queue, reason=reason, for_s=for_s):
            lasts = "" if for_s is None else f" for {span(for_s * 1000)}"
            return Sentence("pause", f"queue {queue} is paused{lasts}" + (f": {reason}" if reason else ""))
        case QueueResumed(queue=queue, expired=expired):
            why = ": its pause is over" if expired else ""
            return Sentence("pause", f"queue {queue} is no longer paused{why}", Level.SUCCESS)
        case PeriodicEnqueued(name=name, queue=queue, job_id=job, due_wall_ms=due, missed=missed):
            place = f", in place of {counted(missed, 'due time', 'due times')} that passed" if missed else ""
            text = f"periodic job {name} is enqueued in {queue} as job {job}, due at {moment(due)}{place}"
            return Sentence("run", text, Level.DEBUG)
        case PeriodicMissed(name=name, times=times, last_due_wall_ms=last):
            passed = counted(times, "due time", "due times")
            text = f"periodic job {name} missed {passed}, the last one at {moment(last)}"
            return Sentence("run", text, Level.WARNING)
