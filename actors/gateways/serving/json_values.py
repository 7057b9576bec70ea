"""Values as JSON, with durations in whole milliseconds.

A field `uptime_s: float` is sent as `uptime_ms: int`, an enum as its value; everything else keeps
its name. `view` converts a value and `view_type` its type by the same rule, so that the OpenAPI
document always matches the responses.
"""

from __future__ import annotations

import json
import types
from enum import Enum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from ...messages.shapes import field_names, has_fields


class ProblemDocument(msgspec.Struct, frozen=True):
    """Why a request was not carried out."""

    error: str
    """A code for programs: unknown_worker, refused, worker_paused, timeout, invalid, malformed, …"""
    message: str
    """A sentence for people."""


class CommandResult(msgspec.Struct, frozen=True):
    """A command was carried out, or is in progress."""

    result: str = "done"
    detail: dict[str, Any] = {}  # a Struct copies its defaults
    """Details of the result, if there are any."""


_PLAIN = frozenset({str, int, float, bool, type(None)})


def view(value: Any) -> Any:
    """The value as it is sent."""
    if type(value) in _PLAIN:  # the most frequent case, and statuses are requested often
        return value
    if isinstance(value, (tuple, list)):  # a union takes twice as long
        return [view(each) for each in value]
    if isinstance(value, Enum):
        return value.value
    if not has_fields(type(value)):
        return value
    return {
        sent: _milliseconds(getattr(value, name)) if name != sent else view(getattr(value, name))
        for name, sent in _names(type(value))  # type: ignore[arg-type, unused-ignore]
    }


def view_type(kind: Any) -> Any:
    """The type of the result of `view`, for the OpenAPI document."""
    if isinstance(kind, type) and has_fields(kind):
        return _struct(kind)
    if get_origin(kind) in (Union, types.UnionType):
        return Union[tuple(view_type(each) for each in get_args(kind))]  # noqa: UP007  # made at run time
    if get_origin(kind) in (tuple, list):
        return list[view_type(get_args(kind)[0])]  # type: ignore[misc]
    return kind


def encode(body: object) -> bytes:
    """The body as JSON; values that JSON does not know are sent as text."""
    try:
        return msgspec.json.encode(body, enc_hook=str)
    except UnicodeEncodeError:  # a lone surrogate; send it escaped
        return json.dumps(msgspec.to_builtins(body, enc_hook=_plain, str_keys=True)).encode()


def _plain(value: object) -> object:
    return msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else str(value)


@cache
def _names(kind: type[Any]) -> tuple[tuple[str, str], ...]:
    """Each field's name, and the name under which it is sent."""
    unsent: frozenset[str] = getattr(kind, "unsent", frozenset())
    return tuple((name, _sent(name)) for name in field_names(kind) if name not in unsent)


def _sent(name: str) -> str:
    return f"{name[:-2]}_ms" if name.endswith("_s") else name


def _milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)


@cache
def _struct(kind: type[Any]) -> type[msgspec.Struct]:
    hints = get_type_hints(kind)
    names: tuple[tuple[str, str], ...] = _names(kind)  # type: ignore[arg-type, unused-ignore]
    fields = [
        (sent, _in_milliseconds(hints[name]) if name != sent else view_type(hints[name]))
        for name, sent in names
    ]
    made = msgspec.defstruct(kind.__name__, fields, kw_only=True)
    made.__doc__ = kind.__doc__
    return made


def _in_milliseconds(kind: Any) -> Any:
    return int | None if type(None) in get_args(kind) else int
