"""Pure: the words of the events about a queue as a whole."""

from __future__ import annotations

from rekindle.worker.plain_text import span

from ...messages import QueueEvent, QueuePaused, QueueResumed
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
