"""An index for the events of one worker, newest first."""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_NAME = "ix_rekindle_event_component_id_id"


def upgrade() -> None:
    """Add the index."""
    op.create_index(op.f(_NAME), "rekindle_event", ["component_id", "id"])


def downgrade() -> None:
    """Remove it."""
    op.drop_index(op.f(_NAME), "rekindle_event")
