"""Pure: from tables to structs, with every misfit told instead of the first one.

msgspec stops at the first error. Here each key is held against its field on its own, what does
not fit is told and left out, and the rest is decoded by msgspec as one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import TypeVar

import msgspec
from msgspec import inspect

from .problems import Finding, KeyPath

T = TypeVar("T")

_WIDEST_BITS = 63
"""TOML's whole numbers have 64 bits, sign included."""

Unknown = Callable[[KeyPath, Iterable[str]], str]
"""What to say about a key that a table does not know; it gets the keys that it does."""


def decoded(table: Mapping[str, object], kind: type[T], unknown: Unknown) -> tuple[T, list[Finding]]:
    """The struct of what fits, and what does not."""
    findings: list[Finding] = []
    fitting = _Reader(findings, unknown).read(table, inspect.type_info(kind), ())
    return msgspec.convert(fitting, kind), findings


def nearest(word: str, known: Iterable[str]) -> str:
    """A suggestion for a misspelt word, as the tail of a sentence; empty if nothing is near."""
    # The comparison takes time that grows with the square of the length.
    near = get_close_matches(word[:64], list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


class _Reader:
    """Walks tables and fields side by side."""

    def __init__(self, findings: list[Finding], unknown: Unknown) -> None:
        self._findings = findings
        self._unknown = unknown

    def read(self, value: object, info: inspect.Type, path: KeyPath) -> object:
        """What fits of a value; `UNSET` if nothing does."""
        match info:
            case inspect.Metadata(type=inner):
                return self.read(value, inner, path)
            case inspect.StructType(fields=fields) if isinstance(value, Mapping):
                return self._read_table(value, {each.encode_name: each.type for each in fields}, path)
            case inspect.DictType(value_type=each_type) if isinstance(value, Mapping):
                return self._read_table(value, dict.fromkeys(value, each_type), path)
            case _ if _fits(value, info):
                return value
            case _:
                self._findings.append(Finding(path, _misfit(value, info), value))
                return msgspec.UNSET

    def _read_table(
        self, table: Mapping[str, object], known: Mapping[str, inspect.Type], path: KeyPath
    ) -> dict[str, object]:
        fitting: dict[str, object] = {}
        for key, value in table.items():
            here = (*path, key)
            if key not in known:
                self._findings.append(Finding(here, self._unknown(here, known), value))
            elif (read := self.read(value, known[key], here)) is not msgspec.UNSET:
                fitting[key] = read
        return fitting


def _fits(value: object, info: inspect.Type) -> bool:
    match info:
        case inspect.Metadata(type=inner):
            return _fits(value, inner)
        case inspect.UnionType(types=types):
            return any(_fits(value, each) for each in types)
        case inspect.VarTupleType(item_type=item):
            return isinstance(value, list) and all(_fits(each, item) for each in value)
        case inspect.EnumType() | inspect.LiteralType():
            return isinstance(value, str) and value in _words(info)
        case inspect.BoolType():
            return isinstance(value, bool)
        case inspect.StrType():
            return isinstance(value, str)
        case inspect.IntType() | inspect.FloatType():
            return _is_number(value, whole=isinstance(info, inspect.IntType))
        case _:
            return False


def _is_number(value: object, *, whole: bool) -> bool:
    if isinstance(value, bool):
        return False
    if isinstance(value, int):
        return value.bit_length() <= _WIDEST_BITS
    return isinstance(value, float) and not whole


def _misfit(value: object, info: inspect.Type) -> str:
    wanted = f"must be {_wanted(info)}"
    if isinstance(value, str):
        if isinstance(info, inspect.VarTupleType):
            return f"{wanted}, never one string"
        return wanted + nearest(value, _words(info))
    if isinstance(info, inspect.StrType) and isinstance(value, int | float):
        return f"{wanted}, in quotes"
    return wanted


def _words(info: inspect.Type) -> list[str]:
    match info:
        case inspect.UnionType(types=types):
            return [word for each in types for word in _words(each)]
        case inspect.EnumType(cls=cls):
            return [str(each.value) for each in cls]
        case inspect.LiteralType(values=values):
            return [str(each) for each in values]
        case _:
            return []


def _wanted(info: inspect.Type) -> str:
    match info:
        case inspect.UnionType(types=types):
            return " or ".join(_wanted(each) for each in types)
        case inspect.VarTupleType(item_type=inspect.IntType()):
            return "a list of whole numbers"
        case inspect.VarTupleType():
            return "a list of words"
        case inspect.EnumType() | inspect.LiteralType() if len(_words(info)) > 1:
            return "one of " + ", ".join(_words(info))
        case inspect.EnumType() | inspect.LiteralType():
            return f'"{_words(info)[0]}"'
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType():
            return "a whole number"
        case inspect.FloatType():
            return "a number"
        case inspect.StrType():
            return "text"
        case _:
            return "a table"
