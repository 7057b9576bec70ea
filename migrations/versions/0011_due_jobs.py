"""An index of the waiting jobs by their time, so that jobs that are not due cost a claim nothing."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the index."""
    where = sa.text("state = 'pending'")
    op.create_index(
        op.f("ix_rekindle_job_due"),
        "rekindle_job",
        ["queue", "not_before_wall_ms"],
        sqlite_where=where,
        postgresql_where=where,
    )


def downgrade() -> None:
    """Remove it."""
    op.drop_index(op.f("ix_rekindle_job_due"), "rekindle_job")
