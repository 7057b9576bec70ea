"""What a host declares about the jobs of a worker: its queues, and what follows a crash or an error."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal

from ...errors import Problem
from ...facts.jobs import DEFAULT_CRASH_RETRIES
from ..validation import Policy, seconds, setting

QUEUE_NAME = re.compile(r"[A-Za-z0-9_-]{1,48}")
"""Without dots and colons, which divide subjects and topics."""

MOST_AT_A_TIME = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPolicy(Policy):
    """Which queues a worker serves, and what happens to a job that crashed it or raised.

    Crashes and errors are counted separately: a crash is the death of the worker, an error is an
    exception that the job raised and that the worker survives.
    """

    queues: tuple[str, ...] = setting(
        (), "The queues that the worker serves, in order of preference; without any it takes no jobs."
    )
    concurrency: int = setting(
        1, "How many jobs the worker executes at a time, in threads.", least=1, most=MOST_AT_A_TIME
    )
    crash_retries: int | None = setting(
        DEFAULT_CRASH_RETRIES,
        "How often a job is requeued after a crash before it is toxic; none: always.",
        least=0,
    )
    isolate_suspects: bool | None = setting(
        None,
        "Whether a job on which a worker died runs alone on its next worker, so that no other job is blamed "
        "for what it does. Default: if the worker executes several jobs at a time.",
    )
    error_retries: int = setting(
        0, "How often a job that raised is retried, unless the job has its own limit.", least=0
    )
    retry_delay_s: float = seconds(5.0, "The delay before the first such retry; it doubles each time.")
    max_retry_delay_s: float = seconds(300.0, "The longest delay before a retry, in seconds.")
    via: Literal["database", "supervisor"] = setting(
        "database",
        "How the worker exchanges jobs: with the database, whose address it is given, or through the"
        " supervisor, so that it needs neither the address nor the password.",
    )
    enqueues: tuple[str, ...] = setting(
        (),
        'The queues beside its own into which a worker with via = "supervisor" may put jobs.',
    )
    cancel_grace_s: float = seconds(
        5.0, "How long a job that was cancelled or timed out may take to end before its process is ended."
    )

    @property
    def isolates(self) -> bool:
        """Whether suspects run alone: jobs that a worker executes together would be blamed together."""
        return self.concurrency > 1 if self.isolate_suspects is None else self.isolate_suspects

    def conflicts(self, wrong: Collection[str]) -> Iterator[Problem]:
        """Names of queues that are not valid, or given twice."""
        for field in ("queues", "enqueues"):
            if field not in wrong:
                yield from _wrong_names(field, getattr(self, field))
        if "via" not in wrong and self.enqueues and self.via != "supervisor":
            yield Problem(
                "enqueues",
                'is for workers with via = "supervisor"; this one is given the address of the database, and'
                " may use every queue",
            )


def _wrong_names(field: str, queues: tuple[str, ...]) -> Iterator[Problem]:
    for queue in queues:
        if not QUEUE_NAME.fullmatch(queue):
            yield Problem(field, f"{queue[:80]!r} is not a queue name; it must match {QUEUE_NAME.pattern}")
    if len(set(queues)) != len(queues):
        yield Problem(field, "names a queue twice")
