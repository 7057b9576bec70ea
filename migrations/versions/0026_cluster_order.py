"""Tasks, groups and order in a cluster: what a wish says of them, and what a tenure has come to."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

_WISH = (("once", "0"), ("unit", ""), ("beside", "[]"), ("after", "{}"))
_TENURE = ("ready_ms", "done_ms")


def upgrade() -> None:
    """Add the columns."""
    for name, default in _WISH:
        kind = sa.Integer() if default == "0" else sa.Text()
        op.add_column("rekindle_wish", sa.Column(name, kind, nullable=False, server_default=default))
    for name in _TENURE:
        op.add_column("rekindle_tenure", sa.Column(name, sa.BigInteger(), nullable=True))
    op.add_column("rekindle_tenure", sa.Column("timetable", sa.Text(), nullable=True))


def downgrade() -> None:
    """Remove them."""
    for name in (*_TENURE, "timetable"):
        op.drop_column("rekindle_tenure", name)
    for name, _ in _WISH:
        op.drop_column("rekindle_wish", name)
