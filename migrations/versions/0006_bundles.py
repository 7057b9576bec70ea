"""The evidence of every death, in a table of its own."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "rekindle_bundle",
        sa.Column("component_id", sa.Text(), nullable=False),
        sa.Column("generation", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at_wall_ms", sa.BigInteger(), nullable=False),
        sa.Column("finding", sa.Text(), nullable=False),
        sa.Column("crash", sa.Text(), nullable=False),
        sa.Column("details", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("component_id", "generation", name=op.f("pk_rekindle_bundle")),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    """Remove it."""
    op.drop_table("rekindle_bundle")
