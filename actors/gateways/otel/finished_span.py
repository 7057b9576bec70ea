"""Pure: a span that has ended, as this gateway describes it; `span_exporter` translates it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from .trace_ids import Parent, SpanPlace

Value = str | int | float | bool
Attributes = Mapping[str, Value]
NS = 1_000_000
"""Nanoseconds in a millisecond."""


class SpanEvent(NamedTuple):
    """Something that happened during a span."""

    name: str
    at_wall_ms: int
    attributes: Attributes = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedSpan:
    """One span."""

    name: str
    place: SpanPlace
    parent: Parent | None = None
    began_wall_ms: int
    ended_wall_ms: int
    attributes: Attributes
    moments: tuple[SpanEvent, ...] = ()
    links: tuple[SpanPlace, ...] = ()
    error: str | None = None
    """Why it ended in an error; None if it did not."""
    is_consumer: bool = False
    """It takes what another program produced."""
    parts: tuple[FinishedSpan, ...] = ()
    """Spans within it, which are sent with it."""


def without_nothing(attributes: Mapping[str, Value | None]) -> Attributes:
    """The attributes that have a value."""
    return {name: value for name, value in attributes.items() if value is not None}
