"""Pure: the `traceparent` of W3C Trace Context, which a job carries from its producer to its worker."""

from __future__ import annotations

import re
from typing import NamedTuple

_FORM = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_SAMPLED = 1


class TraceParent(NamedTuple):
    """A trace and the span in it that caused something."""

    trace_id: str
    span_id: str
    is_sampled: bool


def parsed(text: str) -> TraceParent | None:
    """What a `traceparent` says; None if it is invalid."""
    found = _FORM.fullmatch(text)
    if found is None:
        return None
    version, trace_id, span_id, flags = found.groups()
    if version == "ff" or not int(trace_id, 16) or not int(span_id, 16):
        return None
    return TraceParent(trace_id, span_id, bool(int(flags, 16) & _SAMPLED))
