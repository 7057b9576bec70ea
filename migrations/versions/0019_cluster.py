"""The tables that the nodes of a cluster share: nodes, wishes, assignments, tenures, shipped events."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def _text(name: str, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=nullable)


def _number(name: str, *, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), autoincrement=False, nullable=nullable)


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "rekindle_node",
        *map(_text, ("id", "name", "address", "boot_id", "life", "version")),
        *map(_text, ("labels", "capacity", "engine_node", "state", "state_reason", "state_by", "held")),
        *map(_number, ("incarnation", "renewals", "lease_until_ms", "testified_at_wall_ms")),
        _text("members"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rekindle_node")),
    )
    op.create_table(
        "rekindle_wish",
        *map(_text, ("component_id", "group_name", "spec", "place", "wanted")),
        _number("revision"),
        _text("pinned", nullable=True),
        sa.Column("min_healthy", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("component_id", name=op.f("pk_rekindle_wish")),
    )
    op.create_table(
        "rekindle_assignment",
        _text("component_id"),
        _number("epoch"),
        _text("node_id", nullable=True),
        *map(_text, ("phase", "reason")),
        _number("since_ms"),
        _text("target", nullable=True),
        _text("refused"),
        sa.PrimaryKeyConstraint("component_id", name=op.f("pk_rekindle_assignment")),
    )
    op.create_table(
        "rekindle_tenure",
        _text("component_id"),
        _number("epoch"),
        _text("node_id"),
        _number("began_ms"),
        _number("ended_ms", nullable=True),
        _text("how", nullable=True),
        *map(_number, ("restarts", "streak")),
        _number("last_restart_ms", nullable=True),
        _text("recent_deaths_ms"),
        _number("failed_at_wall_ms", nullable=True),
        _text("failure_reason", nullable=True),
        _number("refunded"),
        _number("reset_at_wall_ms", nullable=True),
        *map(_number, ("last_generation", "noted")),
        sa.PrimaryKeyConstraint("component_id", "epoch", name=op.f("pk_rekindle_tenure")),
    )
    op.create_table(
        "rekindle_shipped_event",
        _text("node_id"),
        *map(_number, ("number", "at_wall_ms")),
        _text("type"),
        _text("component_id", nullable=True),
        _text("payload"),
        sa.PrimaryKeyConstraint("node_id", "number", name=op.f("pk_rekindle_shipped_event")),
    )
    op.create_index(
        op.f("ix_rekindle_shipped_event_component_id"),
        "rekindle_shipped_event",
        ["component_id"],
    )


def downgrade() -> None:
    """Remove them."""
    for name in ("shipped_event", "tenure", "assignment", "wish", "node"):
        op.drop_table(f"rekindle_{name}")
