"""Pure: the fields of our values, whether they are dataclasses or, where many are made, structs."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec

_names: dict[type[Any], tuple[str, ...]] = {}


def has_fields(kind: type[Any]) -> bool:
    """Whether values of this type have fields with names."""
    return issubclass(kind, msgspec.Struct) or dataclasses.is_dataclass(kind)


def field_names(kind: type[Any]) -> tuple[str, ...]:
    """The names of the fields of a type that has some, in their order."""
    names = _names.get(kind)
    if names is None:
        is_struct = issubclass(kind, msgspec.Struct)
        names = kind.__struct_fields__ if is_struct else tuple(each.name for each in dataclasses.fields(kind))
        _names[kind] = names
    return names
