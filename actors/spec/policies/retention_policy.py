"""What a host declares about the past: how much of it is kept."""

from __future__ import annotations

from dataclasses import dataclass

from ..validation import setting

LONGEST_DAYS = 36_500.0
LARGEST_COUNT = 10**9
LARGEST_MB = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How much of the past is kept. Records that a restart decision may need are always kept."""

    event_days: float = setting(
        30.0,
        "Events and resource samples that are older, in days, are deleted.",
        above=0,
        most=LONGEST_DAYS,
        key="keep_days",
    )
    event_count: int = setting(
        100_000, "The number of events that are kept.", least=1, most=LARGEST_COUNT, key="keep_count"
    )
    history_days: float = setting(
        365.0,
        "Deaths, toxic jobs and audit entries that are older, in days, are deleted; "
        "the latest deaths of each worker are kept.",
        above=0,
        most=LONGEST_DAYS,
    )
    audit_count: int = setting(
        100_000, "The number of audit entries that are kept.", least=1, most=LARGEST_COUNT
    )
    job_days: float = setting(
        30.0, "Jobs that ended longer ago, in days, are deleted.", above=0, most=LONGEST_DAYS
    )
    job_mb: float | None = setting(
        None,
        "The oldest finished jobs are deleted when payloads, results and checkpoints of the finished jobs"
        " take more than this, in megabytes; none: no limit.",
        above=0,
        most=LARGEST_MB,
    )
    job_count: int = setting(
        1_000_000,
        "Finished jobs are deleted when this many jobs were added after them.",
        least=1,
        most=LARGEST_COUNT,
    )
