"""The numbers of the workers' processes: reserved, started, ended."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "rekindle_generation",
        sa.Column("component_id", sa.Text(), nullable=False),
        sa.Column("reserved", sa.BigInteger(), nullable=False),
        sa.Column("started", sa.BigInteger(), nullable=False),
        sa.Column("started_at_wall_ms", sa.BigInteger(), nullable=False),
        sa.Column("ended", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("component_id", name=op.f("pk_rekindle_generation")),
    )


def downgrade() -> None:
    """Remove it."""
    op.drop_table("rekindle_generation")
