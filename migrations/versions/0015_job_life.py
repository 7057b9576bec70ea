"""The life of a job: its cancellation, time limit, retry delays, expiry, errors and progress."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

COLUMNS = (
    ("timeout_ms", sa.BigInteger()),
    ("retry_delay_ms", sa.BigInteger()),
    ("max_retry_delay_ms", sa.BigInteger()),
    ("expires_at_wall_ms", sa.BigInteger()),
    ("cancel_requested_at_wall_ms", sa.BigInteger()),
    ("errors", sa.Text()),
    ("progress", sa.Text()),
)


def upgrade() -> None:
    """Add the columns and the index."""
    for name, kind in COLUMNS:
        op.add_column("rekindle_job", sa.Column(name, kind, nullable=True))
    where = sa.text("state = 'pending' AND expires_at_wall_ms IS NOT NULL")
    op.create_index(
        op.f("ix_rekindle_job_expiring"),
        "rekindle_job",
        ["expires_at_wall_ms"],
        sqlite_where=where,
        postgresql_where=where,
    )


def downgrade() -> None:
    """Remove them."""
    op.drop_index(op.f("ix_rekindle_job_expiring"), "rekindle_job")
    for name, _ in reversed(COLUMNS):
        op.drop_column("rekindle_job", name)
