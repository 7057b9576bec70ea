"""Pure: what a starting worker still has to do before it is ready."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ...spec.policies.ready_policy import READY_AFTER_S, Condition, ReadyPolicy, lifetime_words

_FRAME_WORDS = "its first healthy frame"


class Awaited(msgspec.Struct, frozen=True):
    """A condition that is not met yet."""

    condition: Condition
    name: str
    """The condition in words: `tcp 127.0.0.1:5432`."""
    words: str = ""
    """What the latest look at it said: `connection refused`."""

    def __str__(self) -> str:
        return f"{self.name}: {self.words}" if self.words else self.name


FRAME = Awaited(Condition.FRAME, _FRAME_WORDS)


def awaited(ready: ReadyPolicy | None, reports_health: bool) -> tuple[Awaited, ...]:
    """What a worker has to do before it is ready."""
    conditions = {} if ready is None else ready.conditions
    found = tuple(Awaited(condition, name) for condition, name in conditions.items())
    if reports_health:
        return (FRAME, *found)
    return found or (Awaited(Condition.AFTER_S, lifetime_words(READY_AFTER_S)),)


def lifetime_s(ready: ReadyPolicy | None) -> float:
    """How long the process must live, where that is a condition."""
    return READY_AFTER_S if ready is None or ready.after_s is None else ready.after_s


def without(awaits: Iterable[Awaited], condition: Condition) -> tuple[Awaited, ...]:
    """What is left after one condition is met."""
    return tuple(each for each in awaits if each.condition is not condition)


def with_words(awaits: Iterable[Awaited], condition: Condition, words: str) -> tuple[Awaited, ...]:
    """The same conditions after a look at one of them, which is not met."""
    return tuple(
        msgspec.structs.replace(each, words=words) if each.condition is condition else each for each in awaits
    )


def is_awaited(awaits: Iterable[Awaited], condition: Condition) -> bool:
    """Whether this condition is among them."""
    return any(each.condition is condition for each in awaits)


def too_late(awaits: tuple[Awaited, ...], startup_timeout_s: float) -> str:
    """Why a start that took too long failed."""
    if all(each.condition is Condition.FRAME for each in awaits):
        return f"not healthy within {startup_timeout_s:g} s"
    return f"not ready within {startup_timeout_s:g} s: {'; '.join(map(str, awaits))}"
