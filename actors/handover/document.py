"""Pure: the hand-over document, which an upgraded supervisor reads instead of its own memory.

It contains only what the database does not know. Each part of the supervisor has one entry in it: its state
as JSON, and its descriptors by name. Times are those of the monotonic clock, which continues across an exec.

The document is versioned twice. `FORMAT` is the number of its outer shape and of the parts' meaning; another
number is refused. Each part is decoded strictly by its own type, so a newer program may add fields that
have defaults, and a document with a field that it does not know is refused.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar

import msgspec

from ..errors import RekindleError

FORMAT = 1
"""Raise it when the meaning of a part changes; new fields with defaults do not need that."""

T = TypeVar("T")


class HandOverError(RekindleError):
    """A hand-over document that this program cannot use; the text says why."""


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one part of the supervisor leaves."""

    state: Any = None
    descriptors: dict[str, int] = {}


class HandOver(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The whole document."""

    format: int
    version: str
    """The version of Rekindle that wrote it."""
    number: int
    """Counts the upgrades of this process, also those that failed."""
    at: float
    """When the supervisor stopped to watch its workers."""
    back: tuple[str, ...]
    """The command line of the program that wrote it."""
    parts: dict[str, Part]


def encode(document: HandOver) -> bytes:
    """The document as JSON; half a surrogate pair, which JSON has no bytes for, becomes a question mark."""
    try:
        return msgspec.json.encode(document)
    except UnicodeError:
        text = json.dumps(msgspec.to_builtins(document), ensure_ascii=False)
        return text.encode("utf-8", "replace")


def decode(data: bytes) -> HandOver:
    """The document.

    Raises:
        HandOverError: it has another format, or is not a hand-over document.
    """
    try:
        found = msgspec.json.decode(data)
        number = found["format"]
    except (msgspec.DecodeError, UnicodeDecodeError, TypeError, KeyError):
        raise HandOverError("the hand-over document is damaged") from None
    if number != FORMAT:
        writer = found.get("version", "unknown")
        raise HandOverError(
            f"the running supervisor ({writer}) hands over in format {number}, and this version reads"
            f" format {FORMAT}: restart the supervisor instead"
        )
    return convert(found, HandOver, "the document")


def convert(value: Any, kind: type[T], what: str) -> T:
    """A value of the document as this type.

    Raises:
        HandOverError: it does not fit.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise HandOverError(f"this version does not understand {what} of the hand-over: {error}") from None
