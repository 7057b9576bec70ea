"""The version of a worker that was marked as failed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    with op.batch_alter_table("rekindle_worker_restart_policy") as policy:
        policy.add_column(sa.Column("failed_fingerprint", sa.Text(), nullable=True))


def downgrade() -> None:
    """Remove it."""
    with op.batch_alter_table("rekindle_worker_restart_policy") as policy:
        policy.drop_column("failed_fingerprint")
