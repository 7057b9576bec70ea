"""The partial indexes.

They are apart from the tables because their conditions load the SQLAlchemy dialects of both databases,
2.5 MB for the one that is not used. Migrations need them, a running supervisor does not.
"""

from __future__ import annotations

from functools import cache

from sqlalchemy import Index, MetaData, literal_column

from .tables import JOB, METADATA

# Partial, because finished jobs accumulate: each index stays a few pages, however many jobs are done.
_OF_JOBS = (
    ("pending", "pending", ("queue", "priority", "not_before_wall_ms", "id")),
    ("due", "pending", ("queue", "not_before_wall_ms")),
    ("running", "running", ("claimed_by", "claimed_generation")),
    ("toxic", "toxic", ("toxic_since_wall_ms",)),
)


@cache
def whole_metadata() -> MetaData:
    """All tables, with all their indexes."""
    for name, state, columns in _OF_JOBS:
        where = JOB.c.state == literal_column(f"'{state}'")
        Index(
            f"ix_rekindle_job_{name}",
            *(JOB.c[column] for column in columns),
            sqlite_where=where,
            postgresql_where=where,
        )
    return METADATA
