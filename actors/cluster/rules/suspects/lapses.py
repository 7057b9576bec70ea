"""Pure: when a node had no right to run workers, so that its guardian killed them.

    the right ends ─▶ a lapse begins ─ the right is regained ─▶ it is over soon: deaths are seen late

A death in a lapse is the node's fault. The guardian looks at a clock of its own: a right that is extended in
the last moment may have come too late for it, so that is a lapse, too. Times are those of the node.
"""

from __future__ import annotations

import signal

import msgspec

from ....messages import WorkerDied, WorkerFailed

CLOSE_MS = 250
"""An extension that comes later than so long before the end may be too late for the guardian."""
SEEN_MS = 1000
"""So long after a lapse a death by SIGKILL may still be its consequence."""
MOST_SPANS = 20


class Lapses(msgspec.Struct, frozen=True):
    """What is known of the right to run workers."""

    until_ms: int | None = None
    """Its end as it is known now, or as the former life of the agent knew it; None: there was none."""
    spans: tuple[tuple[int, int], ...] = ()

    def guarded(self, until_ms: int, now_ms: int) -> Lapses:
        """The lapses after the guardian was told another end."""
        spans = self.spans
        if self.until_ms is not None and now_ms >= self.until_ms - CLOSE_MS:
            spans = (*spans, (min(self.until_ms, now_ms), now_ms + SEEN_MS))[-MOST_SPANS:]
        return Lapses(until_ms, spans)

    def caused(self, event: WorkerDied | WorkerFailed, at_ms: int) -> bool:
        """Whether the guardian may have killed this process: nothing of it counts against the worker."""
        if self.until_ms is not None and at_ms >= self.until_ms:
            return True
        is_killed = isinstance(event, WorkerFailed) or event.death.exit.signal == signal.SIGKILL
        return is_killed and any(begin <= at_ms <= end for begin, end in self.spans)
