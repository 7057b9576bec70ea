"""Orders to workers of other nodes, and what each node says of its workers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def _text(name: str, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=nullable)


def _number(name: str, *, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), autoincrement=False, nullable=nullable)


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "rekindle_order",
        *map(_text, ("id", "component_id", "node_id", "from_node", "action", "arguments", "given_by")),
        *map(_number, ("given_ms", "until_ms")),
        *map(_text, ("state", "result")),
        _number("ended_ms", nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rekindle_order")),
    )
    op.create_index(op.f("ix_rekindle_order_node_id"), "rekindle_order", ["node_id", "state"])
    op.create_table(
        "rekindle_node_report",
        _text("node_id"),
        _number("at_ms"),
        _number("written_ms"),
        _text("report"),
        sa.PrimaryKeyConstraint("node_id", name=op.f("pk_rekindle_node_report")),
    )


def downgrade() -> None:
    """Remove them."""
    op.drop_table("rekindle_node_report")
    op.drop_table("rekindle_order")
