"""The runs of scheduled workers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "rekindle_run",
        sa.Column("component_id", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("trigger", sa.Text(), nullable=False),
        sa.Column("due_wall_ms", sa.BigInteger(), nullable=False),
        sa.Column("last_due_wall_ms", sa.BigInteger(), nullable=True),
        sa.Column("times", sa.BigInteger(), nullable=False),
        sa.Column("started_at_wall_ms", sa.BigInteger(), nullable=True),
        sa.Column("ended_at_wall_ms", sa.BigInteger(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("signal", sa.Integer(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("component_id", "number", name=op.f("pk_rekindle_run")),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    """Remove it."""
    op.drop_table("rekindle_run")
