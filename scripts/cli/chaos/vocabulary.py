"""From the words of a scenario file to behaviours, moves and expectations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any

from rekindle.actors.simulation import MOVES, Behaviour
from rekindle.actors.simulation.scenarios.expectations import (
    Delays,
    EventsInOrder,
    Expectation,
    ExpectedCounts,
    NothingStartsAfter,
    Reaches,
    Starts,
)
from rekindle.actors.simulation.scenarios.moves import ActorName, DatabaseState, Move

from .fields import (
    Fields,
    Misfit,
    flag,
    number,
    numbers,
    signal_number,
    text,
    texts,
    whole,
)


def behaviour_of(fields: Fields) -> Behaviour:
    """One life."""
    said: dict[str, Any] = {}
    for name, kind in LIFE_FIELDS.items():
        if name in fields and (value := fields.get(name, kind, None)) is not None:
            said[name] = value
    if fields.raw("healthy_after") is False:
        said["healthy_after"] = None
    return Behaviour(**said)


def _when(value: object) -> float:
    """A time; `healthy_after = false` is never."""
    return 0.0 if value is False else number(value)


def _why(value: object) -> str:
    """Why it cannot be spawned; true leaves the words to us."""
    return "No such file or directory" if value is True else text(value)


def _job(value: object) -> int | str:
    return value if isinstance(value, int) and not isinstance(value, bool) else text(value)


LIFE_FIELDS: dict[str, Callable[[object], object]] = {
    "dies_after": number,
    "exit": whole,
    "signal": signal_number,
    "healthy_after": _when,
    "hangs_after": number,
    "stops_heartbeating_after": number,
    "says_recovering": number,
    "cannot_be_spawned": _why,
    "ignores_term": flag,
    "ignores_request": flag,
    "ignores_kill": flag,
    "stops_after": number,
    "needs_database": number,
    "heartbeat": number,
    "job": _job,
    "until": number,
}


def move_of(word: str, fields: Fields) -> Move | None:
    """The move of this word; None if what it is said of does not fit."""
    first, *rest = MOVES[word].__dataclass_fields__
    main = fields.get(word, _KINDS[first], None)
    if main is None:
        return None
    said = {name: fields.get(name, _KINDS[name], None) for name in rest if name in fields}
    known: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
    return MOVES[word](main, **known)


def _one_of(words: type[StrEnum]) -> Callable[[object], StrEnum]:
    def chosen(value: object) -> StrEnum:
        if isinstance(value, str) and value in tuple(words):
            return words(value)
        raise Misfit(f"must be one of {', '.join(words)}")

    return chosen


_KINDS: dict[str, Callable[[object], Any]] = {
    "worker": text,
    "signal": signal_number,
    "for_s": number,
    "by_s": number,
    "every_s": number,
    "takes_s": number,
    "back_after_s": number,
    "lines": whole,
    "times": whole,
    "generations": whole,
    "state": _one_of(DatabaseState),
    "actor": _one_of(ActorName),
}


def expectations_of(worker: str, fields: Fields) -> Iterator[Expectation]:
    """What one table expects of one worker."""
    status = fields.get("status", text, None)
    if status is not None:
        by_s = fields.get("by_s", number, float("inf"))
        yield Reaches(worker, status, by_s, fields.get("after_s", number, 0.0))
    restarts, streak, deaths = (fields.get(name, whole, None) for name in ("restarts", "streak", "deaths"))
    if (restarts, streak, deaths) != (None, None, None):
        yield ExpectedCounts(worker, restarts, streak, deaths)
    if "starts" in fields:
        least, most = fields.get("starts", _span, (0, None))
        yield Starts(worker, least, most)
    if "delays_s" in fields:
        yield Delays(worker, fields.get("delays_s", numbers, ()))
    if "events" in fields:
        yield EventsInOrder(worker, fields.get("events", texts, ()))
    if fields.get("nothing_starts_after_failed", flag, False):
        yield NothingStartsAfter(worker)


def _span(value: object) -> tuple[int, int | None]:
    """`6`, or from `[2, 6]`."""
    if isinstance(value, list) and len(value) == 2:
        return whole(value[0]), whole(value[1])
    exactly = whole(value)
    return exactly, exactly
