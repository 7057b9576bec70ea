"""Reads the jobs that ended, for their spans. Used by one thread, which may wait for the store.

Workers end jobs by connections of their own. A job that was enqueued within a trace is found by an index,
whatever happens; of the others, those that the stream of states shows, which is all of them but in a flood
of short jobs. Nothing is read while nothing happens in the queues.
"""

from __future__ import annotations

import time
from collections import OrderedDict

from loguru import logger

from ...errors import RekindleError
from ...facts.jobs import JobView
from ..event_source import EventSource
from .finished_span import FinishedSpan
from .job_spans import ended_at, job_span

MOST_AT_ONCE = 1000
MOST_KNOWN = 20_000
OVERLAP_MS = 3000
"""How long a transaction that ends a job may take to become visible."""


class JobReader:
    """Turns jobs that ended into spans, each once."""

    def __init__(self, source: EventSource, origin: str) -> None:
        self._source = source
        self._origin = origin
        self._after = (_now_ms() - OVERLAP_MS, 0)
        self._heard: dict[int, None] = {}
        self._known: OrderedDict[tuple[int, int], None] = OrderedDict()
        self.is_due = False
        """Whether there may be more to read."""

    def hear(self, ended: int | None) -> None:
        """Something happened in the queues; and which job ended, if that is known."""
        self.is_due = True
        if ended is not None and len(self._heard) < MOST_KNOWN:
            self._heard[ended] = None

    def ended(self) -> list[FinishedSpan]:
        """The spans of the jobs that ended since the last call."""
        if not self.is_due:
            return []
        self.is_due = False
        try:
            return self._read()
        except RekindleError as error:
            logger.debug("otel: the store returns no jobs; the next look tries again: {}", str(error))
            self.is_due = True
            return []

    def _read(self) -> list[FinishedSpan]:
        jobs = self._source.jobs
        asked = _now_ms()
        traced = jobs.traced(self._after, limit=MOST_AT_ONCE)
        if len(traced) == MOST_AT_ONCE:  # more are there: continue behind these with the next look
            self._after = (traced[-1].finished_at_wall_ms or 0, traced[-1].id)
            self.is_due = True
        else:
            self._after = max(self._after, (asked - OVERLAP_MS, 0))
        heard = list(self._heard)[:MOST_AT_ONCE]
        found = jobs.named(heard, longest=1) if heard else ()
        fresh = [job for job in (*traced, *found) if self._is_new(job)]
        for number in heard:
            del self._heard[number]
        self.is_due |= bool(self._heard)
        again = [job.id for job in fresh if job.attempts > 1 or job.crash_count]
        crashes = jobs.crashes(again) if again else ()
        spans = [job_span(job, crashes, self._origin) for job in fresh]
        return [span for span in spans if span is not None]

    def _is_new(self, job: JobView) -> bool:
        """Whether this end of the job was not seen before; notes it."""
        ended = ended_at(job)
        if ended is None or (job.id, ended) in self._known:
            return False
        self._known[job.id, ended] = None
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)
        return True


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
