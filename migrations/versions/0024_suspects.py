"""Node suspects: the lives of processes on the nodes, and the rulings on nodes that workers die on."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def _text(name: str, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=nullable)


def _number(name: str, *, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), autoincrement=False, nullable=nullable)


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "rekindle_node_life",
        *map(_text, ("node_id", "component_id")),
        *map(_number, ("generation", "epoch", "began_ms")),
        _number("ended_ms", nullable=True),
        _text("cause"),
        _text("fault", nullable=True),
        *map(_number, ("counted", "died", "is_hard")),
        sa.PrimaryKeyConstraint("node_id", "component_id", "generation", name=op.f("pk_rekindle_node_life")),
    )
    op.create_index(op.f("ix_rekindle_node_life_ended_ms"), "rekindle_node_life", ["ended_ms"])
    op.create_index(
        op.f("ix_rekindle_node_life_component_id_epoch"), "rekindle_node_life", ["component_id", "epoch"]
    )
    op.create_table(
        "rekindle_ruling",
        _text("node_id"),
        *map(_number, ("number", "at_ms")),
        *map(_text, ("kind", "why", "given_by", "body")),
        sa.PrimaryKeyConstraint("node_id", "number", name=op.f("pk_rekindle_ruling")),
    )
    op.add_column("rekindle_tenure", _number("lifted_ms", nullable=True))


def downgrade() -> None:
    """Remove them."""
    op.drop_column("rekindle_tenure", "lifted_ms")
    op.drop_table("rekindle_ruling")
    op.drop_index(op.f("ix_rekindle_node_life_component_id_epoch"), "rekindle_node_life")
    op.drop_index(op.f("ix_rekindle_node_life_ended_ms"), "rekindle_node_life")
    op.drop_table("rekindle_node_life")
