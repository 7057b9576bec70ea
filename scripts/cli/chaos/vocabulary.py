"""From the words of a scenario file to behaviours, moves and expectations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_type_hints

from rekindle.actors.simulation import MOVES, Behaviour
from rekindle.actors.simulation.scenarios.expectations import (
    Delays,
    EventsInOrder,
    Expectation,
    ExpectedCounts,
    NothingStartsAfter,
    Reaches,
    Reasons,
    Starts,
)
from rekindle.actors.simulation.scenarios.moves import Move

from .fields import Fields, required

LIFE_FIELDS: Mapping[str, Any] = {
    name: required(hint)
    for name, hint in get_type_hints(Behaviour).items()
    if name not in ("shows_stacks", "usage")
}
"""The keys of one life, with their types."""

_SPAWN_ERROR = "No such file or directory"


def behaviour_of(fields: Fields) -> Behaviour:
    """One life."""
    given: dict[str, Any] = {}
    for name in (each for each in LIFE_FIELDS if each in fields):
        if name == "healthy_after" and fields.raw(name) is False:  # false: never
            given[name] = None
        elif (value := _of_life(name, fields)) is not None:
            given[name] = value
    return Behaviour(**given)


def _of_life(name: str, fields: Fields) -> object:
    if name == "signal":
        return fields.signal(name)
    if name == "cannot_be_spawned" and fields.raw(name) is True:
        return _SPAWN_ERROR
    return fields.get(name, LIFE_FIELDS[name])


def move_of(word: str, fields: Fields) -> Move | None:
    """The move of this word; None if the value of the word does not fit."""
    hints = get_type_hints(MOVES[word])
    first, *rest = hints
    main = fields.get(word, hints[first])
    if main is None:
        return None
    given = {
        name: fields.signal(name) if name == "signal" else fields.get(name, required(hints[name]))
        for name in rest
    }
    known: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    return MOVES[word](main, **known)


def expectations_of(worker: str, fields: Fields) -> Iterator[Expectation]:
    """What one table expects of one worker."""
    status = fields.get("status", str, None)
    if status is not None:
        by_s = fields.get("by_s", float, float("inf"))
        yield Reaches(worker, status, by_s, fields.get("after_s", float, 0.0))
    restarts, streak, deaths = (fields.get(name, int, None) for name in ("restarts", "streak", "deaths"))
    if (restarts, streak, deaths) != (None, None, None):
        yield ExpectedCounts(worker, restarts, streak, deaths)
    if "starts" in fields:
        yield Starts(worker, *_starts(fields))
    if "delays_s" in fields:
        yield Delays(worker, fields.get("delays_s", tuple[float, ...], ()))
    if "reasons" in fields:
        yield Reasons(worker, fields.get("reasons", tuple[str, ...], ()))
    if "events" in fields:
        yield EventsInOrder(worker, fields.get("events", tuple[str, ...], ()))
    if fields.get("nothing_starts_after_failed", bool, False):
        yield NothingStartsAfter(worker)


def _starts(fields: Fields) -> tuple[int, int | None]:
    """The least and the most, from `6` or from `[2, 6]`."""
    given = fields.raw("starts")
    if isinstance(given, list) and len(given) == 2:
        least, most = fields.get("starts", tuple[int, ...], (0, None))
        return least, most
    exactly = fields.get("starts", int)
    return (0, None) if exactly is None else (exactly, exactly)
