"""The numbers of a worker's processes: reserved before they are used, so that none is used twice.

The numbers of a worker grow by one from start to start. The store holds a mark for every worker, and a
supervisor uses no number above it: the mark is written when the supervisor begins, before any process
starts, and moved on long before the numbers reach it. So no start waits for a commit of its own. An
orderly end sets the mark back to the last number. After a supervisor that was killed the numbers
continue behind the mark: a gap, but no number twice. A supervisor that cannot write its mark when it
begins waits for a while; then the store keeps the highest of the marks beside the database, and it holds
for all workers. If that is not possible, numbers continue with the milliseconds since 1970, which no
earlier supervisor has reached.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

BLOCK = 100
"""How many numbers are reserved at a time; half of them are left when the mark is moved on."""

EVERY_OTHER = ""
"""In place of a worker's id: every worker that the store has no mark for."""


def mark_after(generation: int) -> int:
    """The mark that the store holds while this is the worker's latest number."""
    return ((generation + BLOCK // 2) // BLOCK + 1) * BLOCK


class GenerationsReserved(msgspec.Struct, frozen=True):
    """Numbers up to this one may be used; a mark never goes back by this record."""

    component_id: str
    up_to: int


class GenerationsSettled(msgspec.Struct, frozen=True):
    """No number above this one was used, and none will be before the numbers are reserved again."""

    component_id: str
    last: int


class GenerationStarted(msgspec.Struct, frozen=True):
    """A process with this number was started."""

    component_id: str
    generation: int
    at_wall_ms: int


class GenerationEnded(msgspec.Struct, frozen=True):
    """The process with this number ended by a stop; a death has a record of its own."""

    component_id: str
    generation: int


GenerationRecord = GenerationsReserved | GenerationsSettled | GenerationStarted | GenerationEnded


def highest_mark(records: Iterable[object]) -> int:
    """The highest number that these records reserve; 0 if they reserve none."""
    return max((each.up_to for each in records if isinstance(each, GenerationsReserved)), default=0)


class LostLife(msgspec.Struct, frozen=True):
    """A process that was started, and whose end is not recorded: its supervisor was lost with it."""

    component_id: str
    generation: int
    started_at_wall_ms: int
    seen_at_wall_ms: int
    """The last sign of life of its supervisor."""
