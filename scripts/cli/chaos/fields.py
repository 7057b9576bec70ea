"""Pure: single values of a scenario file, each checked against its type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, Union, get_args

from rekindle.actors.deaths.death import NOT_A_SIGNAL, signal_number
from rekindle.actors.spec.validation import Setting, from_file

from ..config.problems import NOTHING, KeyPath


class Fields:
    """The values of one table; a value that does not fit is noted and left out."""

    def __init__(
        self, table: Mapping[str, object], where: KeyPath, note: Callable[[KeyPath, str, object], None]
    ) -> None:
        self.where = where
        self._table = table
        self._note = note

    def __contains__(self, name: str) -> bool:
        return name in self._table

    def raw(self, name: str) -> object:
        """The value as the file has it; None if it is missing."""
        return self._table.get(name)

    def get(self, name: str, hint: Any, default: Any = None) -> Any:
        """The value, if it is there and of this type."""
        if name not in self._table:
            return default
        value = self._table[name]
        reason = Setting(hint).reason(value)
        if reason is not None:
            self._note((*self.where, name), reason, value)
            return default
        return from_file(value, hint)

    def note(self, name: str, problem: str) -> None:
        """Note a problem at a key of this table."""
        self._note((*self.where, name), problem, NOTHING)

    def signal(self, name: str) -> int | None:
        """The number of a signal that is given by its name or number."""
        value = self.get(name, int | str)
        number = None if value is None else signal_number(value)
        if value is not None and number is None:
            self._note((*self.where, name), NOT_A_SIGNAL, value)
        return number


def required(hint: Any) -> Any:
    """A type without None: TOML has no null, so a missing key means None."""
    kinds = tuple(part for part in get_args(hint) if part is not NoneType)
    return Union[kinds] if NoneType in get_args(hint) else hint  # noqa: UP007  # only known now
