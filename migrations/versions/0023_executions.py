"""When an execution began that ended with its worker: for its span, and as evidence."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("rekindle_job_crash", sa.Column("began_at_wall_ms", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    """Remove it."""
    op.drop_column("rekindle_job_crash", "began_at_wall_ms")
