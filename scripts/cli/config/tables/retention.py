"""`[events]`: how much of the past is kept."""

from __future__ import annotations

import math

from rekindle.actors.facts.records import Retention

from ..problems import Finding
from ..structs import File

LONGEST_DAYS = 36_500.0


def retention_of(file: File, findings: list[Finding]) -> Retention:
    """What the file says, or the defaults."""
    table = file.events
    for name in ("keep_days", "history_days", "job_days"):
        days: float = getattr(table, name)
        if not (math.isfinite(days) and 0 < days <= LONGEST_DAYS):
            findings.append(Finding(("events", name), f"must be above 0 and at most {LONGEST_DAYS:g}", days))
    for name in ("keep_count", "job_count"):
        count: int = getattr(table, name)
        if not 1 <= count <= 10**9:
            findings.append(Finding(("events", name), "must be between 1 and 1000000000", count))
    return Retention(
        event_days=table.keep_days,
        event_count=table.keep_count,
        history_days=table.history_days,
        job_days=table.job_days,
        job_count=table.job_count,
    )
