"""The trace that a job belongs to, and an index of the jobs that have one by their end."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column and the index."""
    op.add_column("rekindle_job", sa.Column("traceparent", sa.Text(), nullable=True))
    where = sa.text("traceparent IS NOT NULL")
    op.create_index(
        op.f("ix_rekindle_job_traced"),
        "rekindle_job",
        ["finished_at_wall_ms", "id"],
        sqlite_where=where,
        postgresql_where=where,
    )


def downgrade() -> None:
    """Remove them."""
    op.drop_index(op.f("ix_rekindle_job_traced"), "rekindle_job")
    op.drop_column("rekindle_job", "traceparent")
