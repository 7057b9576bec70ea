"""What a host declares about workers that stand and fall together; checked when it is constructed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum

from ...errors import Problem
from ..validation import SHORTEST_S, Policy, check, seconds, setting

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,47}")


class Strategy(StrEnum):
    """Which members of a group are restarted when one of them dies."""

    ONE_FOR_ONE = "one_for_one"
    ONE_FOR_ALL = "one_for_all"
    REST_FOR_ONE = "rest_for_one"


class GroupExhausted(StrEnum):
    """What becomes of a group that cannot be kept up."""

    FAIL = "fail"
    ESCALATE = "escalate"


class Essential(StrEnum):
    """Which ends of a worker or group stop the supervisor."""

    ON_FAILURE = "on_failure"
    ON_END = "on_end"


@dataclass(frozen=True, slots=True)
class Group(Policy):
    """Workers that are started in order, stopped in reverse order, and restarted by a strategy."""

    name: str
    members: tuple[str, ...] = setting(
        (), "The members in the order of their start: names of worker tables or of groups."
    )
    _: KW_ONLY
    strategy: Strategy = setting(
        Strategy.ONE_FOR_ONE,
        "Which members restart when one dies: one_for_one only that one, one_for_all all of them, "
        "rest_for_one that one and those after it.",
    )
    max_in_window: int | None = setting(
        5, "How many restarts of its members are allowed within window_s; none: no limit.", least=1
    )
    window_s: float = seconds(300.0, "The window of max_in_window, in seconds.", least=SHORTEST_S)
    on_exhausted: GroupExhausted = setting(
        GroupExhausted.FAIL,
        "What happens when the group cannot be kept up: fail stops all of it; escalate makes it a death in "
        "the enclosing group, or stops the supervisor if there is none.",
    )
    essential: bool | Essential = setting(
        False,
        "Whether the supervisor stops when the group is given up (true or on_failure), or when all its "
        "members have ended as well (on_end).",
    )

    def __post_init__(self) -> None:
        check(self, f"group {self.name!s:.64}")

    def conflicts(self, wrong: Collection[str]) -> Iterator[Problem]:
        """A name that is not valid, and members that are missing or named twice."""
        if "name" not in wrong and not _NAME.fullmatch(self.name):
            yield Problem("name", f"must match {_NAME.pattern}", self.name)
        if "members" in wrong:
            return
        if not self.members:
            yield Problem("members", "must name at least one worker or group", self.members)
        for twice in sorted({each for each in self.members if self.members.count(each) > 1}):
            yield Problem("members", f"names {twice!r} twice", self.members)
        if self.name in self.members:
            yield Problem("members", "names the group itself", self.members)


@dataclass(frozen=True, slots=True)
class Membership:
    """A worker's place in a group: workers of one table share a position."""

    group: Group
    position: int


def ends_with(essential: bool | Essential, *, failed: bool) -> bool:
    """Whether the supervisor stops with this end: with a failure, or with any."""
    return essential is Essential.ON_END or (failed and essential is not False)
