"""Pure: the fields of dataclasses and structs."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec

_names: dict[type[Any], tuple[str, ...]] = {}


def has_fields(kind: type[Any]) -> bool:
    """Whether values of this type have named fields."""
    return issubclass(kind, msgspec.Struct) or dataclasses.is_dataclass(kind)


def field_names(kind: type[Any]) -> tuple[str, ...]:
    """The names of a type's fields, in order."""
    names = _names.get(kind)
    if names is None:
        is_struct = issubclass(kind, msgspec.Struct)
        names = kind.__struct_fields__ if is_struct else tuple(each.name for each in dataclasses.fields(kind))
        _names[kind] = names
    return names
