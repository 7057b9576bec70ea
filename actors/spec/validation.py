"""Pure: whether declared values fit their fields. What does not fit is described; `refuse` raises it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from ..errors import Problem, SpecError

SHORTEST_S = 0.001
LONGEST_S = 1e9
"""Thirty years. Past it a timer overflows, and nobody means it."""


def coerce(owner: object) -> None:
    """Put an enumeration's member in the place of its word, and a tuple in that of a list.

    Configuration has words and lists only. What does not fit stays for `mistyped` to tell.
    """
    for name, hint in _hints(owner).items():
        value = getattr(owner, name)
        if _is_enumeration(hint) and isinstance(value, str) and value in list(hint):
            object.__setattr__(owner, name, hint(value))
        elif get_origin(hint) is tuple and isinstance(value, list):
            object.__setattr__(owner, name, tuple(value))


def refuse(owner: object, problems: Iterable[Problem]) -> None:
    """Raise what is wrong, all of it at once."""
    found = tuple(problems)
    if found:
        raise SpecError(str(owner), found)


def mistyped(owner: object) -> Iterator[Problem]:
    """The fields whose values are not of their types."""
    for name, hint in _hints(owner).items():
        value = getattr(owner, name)
        if not _fits(value, hint):
            yield Problem(name, f"must be {_wanted(hint)}, is {_shown(value)}")


def durations(owner: object, *names: str, least: float = 0.0) -> Iterator[Problem]:
    """The fields that are no sensible number of seconds. None is none of our business."""
    for name, value in _numbers(owner, names):
        if not value >= least:  # so NaN is refused too
            reason = "must not be negative" if least == 0 else f"must be above 0, at least {least:g}"
            yield Problem(name, f"{reason}, is {_shown(value)}")
        elif value > LONGEST_S:
            yield Problem(name, f"must be at most {LONGEST_S:g}, is {_shown(value)}")


def above_zero(owner: object, *names: str) -> Iterator[Problem]:
    """The fields that are no positive, finite number."""
    for name, value in _numbers(owner, names):
        if not 0 < value < float("inf"):
            yield Problem(name, f"must be above 0, is {_shown(value)}")


def at_least(least: int, owner: object, *names: str) -> Iterator[Problem]:
    """The fields that are below a bound, or infinite."""
    for name, value in _numbers(owner, names):
        if not least <= value < float("inf"):
            yield Problem(name, f"must be at least {least}, is {_shown(value)}")


def shares(owner: object, *names: str) -> Iterator[Problem]:
    """The fields that are not between nothing and all."""
    for name, value in _numbers(owner, names):
        if not 0 <= value <= 1:
            yield Problem(name, f"must be between 0 and 1, is {_shown(value)}")


def exceeds(owner: object, name: str, bound: str) -> bool:
    """Whether one field is greater than another; not if either is no number."""
    values = dict(_numbers(owner, (name, bound)))
    return len(values) == 2 and values[name] > values[bound]


def _numbers(owner: object, names: tuple[str, ...]) -> Iterator[tuple[str, float]]:
    for name in names:
        value = getattr(owner, name)
        if _fits(value, float):
            yield name, value


def _hints(owner: object) -> dict[str, Any]:
    kind: Any = type(owner)
    return _hints_of(kind)


@cache
def _hints_of(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {each.name: hints[each.name] for each in fields(kind)}


def _is_enumeration(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, StrEnum)


def _fits(value: object, hint: Any) -> bool:
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(each, parts[0]) for each in value)
    if origin is Mapping:
        return isinstance(value, Mapping) and all(
            _fits(key, parts[0]) and _fits(each, parts[1]) for key, each in value.items()
        )
    if origin is Callable:
        return callable(value)
    if hint in (int, float):
        # A flag is an int to Python, and a mistake to everybody else.
        return isinstance(value, int if hint is int else (int, float)) and not isinstance(value, bool)
    return isinstance(value, hint)


_WORDS: dict[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    NoneType: "none",
    tuple[int, ...]: "a list of whole numbers",
    tuple[str, ...]: "a list of words",
    Mapping[str, str]: "a table of text",
}


def _wanted(hint: Any) -> str:
    if get_origin(hint) is Callable:
        return "a function"
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(_wanted(part) for part in get_args(hint))
    if _is_enumeration(hint):
        return "one of " + ", ".join(hint)
    return _WORDS.get(hint) or f"a {hint.__name__}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
