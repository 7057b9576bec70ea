"""Pure: the numbers of a worker's processes, as the table `rekindle_generation` holds them."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from rekindle.actors.facts.generations import (
    GenerationEnded,
    GenerationRecord,
    GenerationsReserved,
    GenerationsSettled,
    GenerationStarted,
    mark_after,
)


class Numbers(msgspec.Struct, frozen=True):
    """The row of a worker."""

    component_id: str
    reserved: int
    started: int = 0
    started_at_wall_ms: int = 0
    ended: int = 0


def numbers_after(row: Numbers | None, record: GenerationRecord) -> Numbers:
    """The row once this record is written; None: there was none."""
    worker = record.component_id
    match record:
        case GenerationsReserved(up_to=up_to):
            row = row or Numbers(worker, up_to)
            return replace(row, reserved=max(row.reserved, up_to))
        case GenerationsSettled(last=last):
            return replace(row or Numbers(worker, last), reserved=last)
        case GenerationStarted(generation=number, at_wall_ms=at):
            row = row or Numbers(worker, mark_after(number))
            return replace(row, started=number, started_at_wall_ms=at)
        case GenerationEnded(generation=number):
            return replace(row or Numbers(worker, mark_after(number), number), ended=number)
