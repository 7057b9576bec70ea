"""The outcome of a dead worker's work item."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns."""
    with op.batch_alter_table("rekindle_death") as death:
        death.add_column(sa.Column("work_item", sa.Text(), nullable=True))
        death.add_column(sa.Column("released", sa.Text(), nullable=True))


def downgrade() -> None:
    """Remove them."""
    with op.batch_alter_table("rekindle_death") as death:
        death.drop_column("released")
        death.drop_column("work_item")
