"""How many restarts of the history a reset took off the counter."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_RESTARTS = (
    "(SELECT count(*) FROM rekindle_death AS death WHERE death.action = 'restart'"
    " AND death.component_id = rekindle_worker_restart_policy.component_id)"
)


def upgrade() -> None:
    """Add the column; what the counters of existing workers do not include was reset or removed."""
    with op.batch_alter_table("rekindle_worker_restart_policy") as policy:
        policy.add_column(
            sa.Column("restarts_before_reset", sa.BigInteger(), nullable=False, server_default="0")
        )
    op.execute(
        f"UPDATE rekindle_worker_restart_policy SET restarts_before_reset = {_RESTARTS} - restart_count"
        f" WHERE {_RESTARTS} > restart_count"
    )
    # Formerly the counter of a removed worker was deleted, and its history stayed.
    op.execute(
        "INSERT INTO rekindle_worker_restart_policy"
        " (component_id, restart_count, streak_count, updated_at_wall_ms, restarts_before_reset)"
        " SELECT component_id, 0, 0, max(died_at_wall_ms), count(*) FROM rekindle_death"
        " WHERE action = 'restart'"
        " AND component_id NOT IN (SELECT component_id FROM rekindle_worker_restart_policy)"
        " GROUP BY component_id"
    )


def downgrade() -> None:
    """Remove it."""
    with op.batch_alter_table("rekindle_worker_restart_policy") as policy:
        policy.drop_column("restarts_before_reset")
