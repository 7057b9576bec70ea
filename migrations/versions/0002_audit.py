"""The audit of operators' orders, and when a worker was last reset."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_ROW_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Add the table and the column."""
    op.create_table(
        "rekindle_audit",
        sa.Column("id", _ROW_ID, autoincrement=True, nullable=False),
        sa.Column("at_wall_ms", sa.BigInteger(), nullable=False),
        sa.Column("gateway", sa.Text(), nullable=False),
        sa.Column("uid", sa.BigInteger(), nullable=True),
        sa.Column("pid", sa.BigInteger(), nullable=True),
        sa.Column("claimed_user", sa.Text(), nullable=True),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("result", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rekindle_audit")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("rekindle_worker_restart_policy") as policy:
        policy.add_column(sa.Column("reset_at_wall_ms", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    """Remove them."""
    with op.batch_alter_table("rekindle_worker_restart_policy") as policy:
        policy.drop_column("reset_at_wall_ms")
    op.drop_table("rekindle_audit")
