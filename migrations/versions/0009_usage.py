"""The usage samples of workers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "rekindle_usage",
        sa.Column("component_id", sa.Text(), nullable=False),
        sa.Column("at_wall_ms", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("memory_mb", sa.Float(), nullable=False),
        sa.Column("peak_memory_mb", sa.Float(), nullable=False),
        sa.Column("cpu_percent", sa.Float(), nullable=True),
        sa.Column("threads", sa.Integer(), nullable=False),
        sa.Column("descriptors", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("component_id", "at_wall_ms", name=op.f("pk_rekindle_usage")),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    """Remove it."""
    op.drop_table("rekindle_usage")
