"""Until when a draining node may keep its workers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("rekindle_node", sa.Column("drain_until_ms", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    """Remove it."""
    op.drop_column("rekindle_node", "drain_until_ms")
