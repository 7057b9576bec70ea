"""What a host declares about the jobs of a worker: its queues, and what follows a crash or an error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import Problem
from ..facts.jobs import DEFAULT_CRASH_RETRIES
from .validation import at_least, coerce, durations, mistyped, refuse

QUEUE_NAME = re.compile(r"[A-Za-z0-9_-]{1,48}")
"""Without dots and colons, which divide subjects and topics."""

MOST_AT_A_TIME = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPolicy:
    """Which queues a worker serves, and how often a job is tried again.

    A crash and an error are counted apart: a crash is the death of the worker, an error is an
    exception that the job raised, which the worker survives.
    """

    queues: tuple[str, ...] = ()
    """In the order of preference; a worker without any takes no jobs."""
    concurrency: int = 1
    """How many jobs it executes at a time, in threads."""
    crash_retries: int | None = DEFAULT_CRASH_RETRIES
    """How often a job is requeued after a crash, before it is toxic; None is always."""
    isolate_suspects: bool = False
    """A job on which a worker died runs alone, on a worker that does nothing else: if that one
    dies too, the job is convicted."""
    error_retries: int = 0
    """How often a job that raised is tried again, unless the job itself says otherwise."""
    retry_delay_s: float = 5.0
    """Before the first of these; it doubles each time."""
    max_retry_delay_s: float = 300.0

    def __post_init__(self) -> None:
        coerce(self)
        refuse("policy", self.problems())

    def problems(self) -> Iterator[Problem]:
        """What is wrong with this policy."""
        wrong = tuple(mistyped(self))
        yield from wrong
        yield from at_least(0, self, "crash_retries", "error_retries")
        yield from at_least(1, self, "concurrency")
        yield from durations(self, "retry_delay_s", "max_retry_delay_s")
        if not wrong and self.concurrency > MOST_AT_A_TIME:
            yield Problem("concurrency", f"must be at most {MOST_AT_A_TIME}, is {self.concurrency}")
        if any(problem.field == "queues" for problem in wrong):
            return
        for queue in self.queues:
            if not QUEUE_NAME.fullmatch(queue):
                yield Problem("queues", f"{queue[:80]!r} is no name: it must match {QUEUE_NAME.pattern}")
        if len(set(self.queues)) != len(self.queues):
            yield Problem("queues", "names a queue twice")
