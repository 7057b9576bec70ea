"""Pure: topics and the patterns that select them.

    worker:tag:0:status      one worker            event:worker_died:worker:tag:0   one event of the log
    queue:tag:status         one queue             queue:status                     all queues together
    queue:jobs               the active jobs       system:health                    the system itself

A `*` stands for one or more parts: `worker:*:status` is every worker, `event:*` the whole log, and
`event:store_degraded:*` every such event, of a worker or not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

LONGEST_PATTERN = 160
MOST_PATTERNS = 32
MOST_STARS = 3
"""More match nothing new, and each one multiplies the cost of a match."""

ALL_EVENTS = "event:*"
ALL_STATES = ("worker:*:status", "queue:status", "queue:*:status", "queue:jobs", "system:health")
QUEUES = "queue:status"
JOBS = "queue:jobs"
SYSTEM = "system:health"

_PART = re.compile(r"[A-Za-z0-9_.-]+|\*")


def worker_topic(component_id: str) -> str:
    """The topic of one worker's state."""
    named = component_id if component_id.startswith("worker:") else f"worker:{component_id}"
    return f"{named}:status"


def queue_topic(queue_type: str) -> str:
    """The topic of one queue's numbers."""
    return f"queue:{queue_type}:status"


def event_topic(type_: str, component_id: str | None) -> str:
    """The topic of one event of the log."""
    return f"event:{type_}" if component_id is None else f"event:{type_}:{component_id}"


class Topics:
    """The patterns of one subscriber."""

    __slots__ = ("_chosen", "patterns")

    def __init__(self, patterns: Iterable[str]) -> None:
        """Take patterns for which `problem` returns None."""
        self.patterns = tuple(patterns)
        self._chosen = re.compile("|".join(_expression(pattern) for pattern in self.patterns) or r"(?!)")

    def choose(self, topic: str) -> bool:
        """Whether any of them selects the topic."""
        return self._chosen.fullmatch(topic) is not None


def problem(pattern: str) -> str | None:
    """Why a pattern is invalid, in a sentence; None if it is valid."""
    if len(pattern) > LONGEST_PATTERN:
        return f"a topic is longer than {LONGEST_PATTERN} characters"
    parts = pattern.split(":")
    if not all(_PART.fullmatch(part) for part in parts):
        return f"{pattern!r} is not a topic: its parts are letters, digits and _.- or a single *"
    if parts.count("*") > MOST_STARS:
        return f"{pattern!r} is not a topic: it has more than {MOST_STARS} stars"
    if not _can_choose(parts):
        return f"{pattern!r} is not a topic; use one of {', '.join((*ALL_STATES, ALL_EVENTS))}"
    return None


def _can_choose(parts: list[str]) -> bool:
    match parts:
        case ["*"] | ["worker" | "queue" | "system" | "event", "*"]:
            return True
        case ["worker", _, *_, "status" | "*"] | ["queue", _, *_, "status" | "*"]:
            return True
        case ["queue", "status" | "jobs"] | ["system", "health"] | ["event", _, *_]:
            return True
        case _:
            return False


def _expression(pattern: str) -> str:
    parts = (r"[^:]+(?::[^:]+)*" if part == "*" else re.escape(part) for part in pattern.split(":"))
    expression = ":".join(parts)
    is_of_one_type = re.fullmatch(r"event:[^:*]+:\*", pattern) is not None
    return f"{expression}|{re.escape(pattern.removesuffix(':*'))}" if is_of_one_type else expression
