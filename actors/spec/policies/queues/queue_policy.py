"""What a host declares about a queue: how many of its jobs run at a time, and are started in a time."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass

from ....errors import Problem
from ....facts.queues import QueueLimits, Rate
from ...validation import Policy, check, refuse, setting
from ..job_policy import QUEUE_NAME

MOST_AT_A_TIME = 1_000_000
_RATE = re.compile(r"(\d{1,7})\s*(?:/|per)\s*(\d{0,6})\s*(s|sec|second|m|min|minute|h|hour|d|day)")
_PERIODS_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True, slots=True)
class QueuePolicy(Policy):
    """Limits of a queue over all workers. A job with a key counts against the limits of its key as well."""

    name: str
    _: KW_ONLY
    concurrency: int | None = setting(
        None, "How many jobs of the queue run at a time; none: no limit.", least=1, most=MOST_AT_A_TIME
    )
    rate: str | None = setting(
        None, "How many jobs are started in a time, such as 100/min, 5/s or 10/15min; none: no limit."
    )
    key_concurrency: int | None = setting(
        None, "How many jobs with the same key run at a time; none: no limit.", least=1, most=MOST_AT_A_TIME
    )
    key_rate: str | None = setting(
        None, "How many jobs with the same key are started in a time, such as 10/min; none: no limit."
    )

    def __post_init__(self) -> None:
        check(self, f"queue {self.name!s:.64}")

    def conflicts(self, wrong: Collection[str]) -> Iterator[Problem]:
        """A name or a rate that is not valid."""
        if "name" not in wrong and not QUEUE_NAME.fullmatch(self.name):
            yield Problem("name", f"must be a name that matches {QUEUE_NAME.pattern}", self.name)
        for field in ("rate", "key_rate"):
            text = getattr(self, field)
            if field not in wrong and text is not None and rate_of(text) is None:
                yield Problem(field, "must be a number in a time, such as 100/min, 5/s or 10/15min", text)

    @property
    def limits(self) -> QueueLimits:
        """The limits as they are stored."""
        return QueueLimits(
            queue=self.name,
            concurrency=self.concurrency,
            rate=None if self.rate is None else rate_of(self.rate),
            key_concurrency=self.key_concurrency,
            key_rate=None if self.key_rate is None else rate_of(self.key_rate),
        )


def rate_of(text: str) -> Rate | None:
    """The rate in a text such as 100/min; None if it is not one."""
    found = _RATE.fullmatch(text.strip().lower()[:64])
    if found is None:
        return None
    count, many, unit = int(found[1]), int(found[2] or 1), found[3]
    return Rate(count, many * _PERIODS_MS[unit[0]]) if count and many else None


def distinct_queues(policies: Iterable[QueuePolicy]) -> tuple[QueuePolicy, ...]:
    """The policies, if no two are about the same queue.

    Raises:
        SpecError: two are.
    """
    known: dict[str, QueuePolicy] = {}
    for policy in policies:
        if policy.name in known:
            refuse(f"queue {policy.name}", [Problem("name", "has two policies", policy.name)], kind="policy")
        known[policy.name] = policy
    return tuple(known.values())
