"""Alerts: one row per episode."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "rekindle_alert",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("component_id", sa.Text(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("severity", sa.Text(), nullable=False),
        sa.Column("opened_at_wall_ms", sa.BigInteger(), nullable=False),
        sa.Column("resolved_at_wall_ms", sa.BigInteger(), nullable=True),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rekindle_alert")),
    )


def downgrade() -> None:
    """Remove it."""
    op.drop_table("rekindle_alert")
