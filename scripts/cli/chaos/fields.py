"""Single values of a scenario file, each held against what it must be."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeVar

from rekindle.actors.deaths.death import signal_number as known_signal

from ..config.problems import KeyPath

T = TypeVar("T")
D = TypeVar("D")


class Misfit(ValueError):  # noqa: N818  # it is told as a problem, and never raised at anybody
    """Why a value cannot stand where it stands."""


class Fields:
    """The values of one table; what does not fit is noted and left out."""

    def __init__(
        self, table: Mapping[str, object], where: KeyPath, note: Callable[[KeyPath, str, object], None]
    ) -> None:
        self.where = where
        self._table = table
        self._note = note

    def __contains__(self, name: str) -> bool:
        return name in self._table

    def raw(self, name: str) -> object:
        """What stands there; None if nothing does."""
        return self._table.get(name)

    def get(self, name: str, kind: Callable[[object], T], default: D) -> T | D:
        """The value, if it is there and fits."""
        if name not in self._table:
            return default
        try:
            return kind(self._table[name])
        except Misfit as why:
            self._note((*self.where, name), str(why), self._table[name])
            return default


def number(value: object) -> float:
    """A number of seconds, say."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise Misfit("must be a number")
    return float(value)


def whole(value: object) -> int:
    """A whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise Misfit("must be a whole number")
    return value


def flag(value: object) -> bool:
    """Yes or no."""
    if not isinstance(value, bool):
        raise Misfit("must be true or false")
    return value


def text(value: object) -> str:
    """A word or a sentence."""
    if not isinstance(value, str):
        raise Misfit("must be text")
    return value


def texts(value: object) -> tuple[str, ...]:
    """A list of words."""
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise Misfit("must be a list of words")
    return tuple(value)


def numbers(value: object) -> tuple[float, ...]:
    """A list of numbers."""
    if not isinstance(value, list):
        raise Misfit("must be a list of numbers")
    return tuple(number(each) for each in value)


def signal_number(value: object) -> int:
    """A signal, by its name or its number."""
    number_ = known_signal(value if isinstance(value, str) else whole(value))
    if number_ is None:
        raise Misfit("is no signal; SIGKILL, SIGTERM, SIGSEGV and the like are")
    return number_
