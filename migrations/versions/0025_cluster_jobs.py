"""The node and the epoch of a claim, how often a job was on a node that was lost, and the run of a node."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns."""
    op.add_column("rekindle_job", sa.Column("claimed_node", sa.Text(), nullable=True))
    op.add_column("rekindle_job", sa.Column("claimed_epoch", sa.BigInteger(), nullable=True))
    op.add_column("rekindle_job", sa.Column("lost_count", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("rekindle_node", sa.Column("run", sa.Text(), nullable=False, server_default=""))


def downgrade() -> None:
    """Remove them."""
    op.drop_column("rekindle_node", "run")
    for name in ("lost_count", "claimed_epoch", "claimed_node"):
        op.drop_column("rekindle_job", name)
