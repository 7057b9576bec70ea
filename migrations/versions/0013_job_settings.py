"""Settings of a job of its own: retries after crashes, a key that makes it unique, and its checkpoint."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

COLUMNS = (("crash_retries", sa.Integer()), ("unique_key", sa.Text()), ("checkpoint", sa.Text()))


def upgrade() -> None:
    """Add the columns and the index."""
    for name, kind in COLUMNS:
        op.add_column("rekindle_job", sa.Column(name, kind, nullable=True))
    where = sa.text("unique_key IS NOT NULL")
    op.create_index(
        op.f("ix_rekindle_job_unique"),
        "rekindle_job",
        ["queue", "unique_key"],
        sqlite_where=where,
        postgresql_where=where,
    )


def downgrade() -> None:
    """Remove them."""
    op.drop_index(op.f("ix_rekindle_job_unique"), "rekindle_job")
    for name, _ in reversed(COLUMNS):
        op.drop_column("rekindle_job", name)
