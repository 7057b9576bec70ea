"""The partial indexes.

They are apart from the tables because their conditions load the SQLAlchemy dialects of both databases,
2.5 MB for the one that is not used. Migrations need them, a running supervisor does not.
"""

from __future__ import annotations

from functools import cache

from sqlalchemy import ColumnElement, Index, MetaData, and_, literal_column

from .tables import JOB, METADATA


def _is(state: str) -> ColumnElement[bool]:
    return JOB.c.state == literal_column(f"'{state}'")


# Partial, because finished jobs accumulate: each index stays a few pages, however many jobs are done.
_OF_JOBS = (
    ("pending", _is("pending"), ("queue", "priority", "not_before_wall_ms", "id")),
    ("due", _is("pending"), ("queue", "not_before_wall_ms")),
    ("running", _is("running"), ("claimed_by", "claimed_generation")),
    ("toxic", _is("toxic"), ("toxic_since_wall_ms",)),
    (
        "keyed",
        and_(_is("pending"), JOB.c.key.is_not(None)),
        ("queue", "key", "priority", "not_before_wall_ms", "id"),
    ),
    ("failed_by", JOB.c.failed_by.is_not(None), ("failed_by",)),
    ("traced", JOB.c.traceparent.is_not(None), ("finished_at_wall_ms", "id")),
    ("batch_id", JOB.c.batch_id.is_not(None), ("batch_id",)),
    ("unique", JOB.c.unique_key.is_not(None), ("queue", "unique_key")),
    (
        "expiring",
        and_(_is("pending"), JOB.c.expires_at_wall_ms.is_not(None)),
        ("expires_at_wall_ms",),
    ),
)


@cache
def whole_metadata() -> MetaData:
    """All tables, those of a cluster too, with all their indexes."""
    from . import cluster_tables  # noqa: F401  # adds them

    for name, where, columns in _OF_JOBS:
        Index(
            f"ix_rekindle_job_{name}",
            *(JOB.c[column] for column in columns),
            sqlite_where=where,
            postgresql_where=where,
        )
    return METADATA
