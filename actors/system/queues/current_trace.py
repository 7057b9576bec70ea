"""The trace that the caller is in, which its jobs belong to.

OpenTelemetry is asked only if the host has loaded it; nothing here loads it.
"""

from __future__ import annotations

import sys

from ...spec.job_payload import JobSettings


def with_trace(settings: JobSettings) -> JobSettings:
    """The settings of a job, with the caller's current span if they name no trace."""
    if "traceparent" in settings:
        return settings
    found = current_traceparent()
    return settings if found is None else {**settings, "traceparent": found}


def current_traceparent() -> str | None:
    """The caller's current span, as W3C Trace Context has it; None if there is none."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    span = trace.get_current_span().get_span_context()
    if not span.is_valid:
        return None
    return f"00-{span.trace_id:032x}-{span.span_id:016x}-{int(span.trace_flags):02x}"
