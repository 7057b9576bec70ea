"""Jobs: the claimant and its run, errors apart from crashes, and the evidence of crashes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_ROW_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_FORMER_INDEXES = (
    (
        "ix_rekindle_job_queue_state_priority_not_before_wall_ms",
        ["queue", "state", "priority", "not_before_wall_ms"],
    ),
    ("ix_rekindle_job_claimed_by_claimed_generation", ["claimed_by", "claimed_generation"]),
)
_INDEXES = (
    ("pending", ["queue", "priority", "not_before_wall_ms", "id"]),
    ("running", ["claimed_by", "claimed_generation"]),
    ("toxic", ["toxic_since_wall_ms"]),
)


def upgrade() -> None:
    """Add the columns and the table, and replace the indexes with partial ones."""
    for name, _ in _FORMER_INDEXES:
        op.drop_index(op.f(name), "rekindle_job")
    op.execute(
        "UPDATE rekindle_job SET not_before_wall_ms = created_at_wall_ms WHERE not_before_wall_ms IS NULL"
    )
    with op.batch_alter_table("rekindle_job", table_kwargs={"sqlite_autoincrement": True}) as job:
        job.add_column(sa.Column("error_count", sa.Integer(), nullable=False, server_default="0"))
        job.add_column(sa.Column("max_retries", sa.Integer(), nullable=True))
        job.add_column(sa.Column("alone", sa.Integer(), nullable=False, server_default="0"))
        job.add_column(sa.Column("claimed_run", sa.Text(), nullable=True))
        job.alter_column("not_before_wall_ms", existing_type=sa.BigInteger(), nullable=False)
    for state, columns in _INDEXES:
        where = sa.text(f"state = '{state}'")
        op.create_index(
            op.f(f"ix_rekindle_job_{state}"),
            "rekindle_job",
            columns,
            sqlite_where=where,
            postgresql_where=where,
        )
    _create_job_crash()


def downgrade() -> None:
    """Remove them with the evidence."""
    op.drop_table("rekindle_job_crash")
    for state, _ in _INDEXES:
        op.drop_index(op.f(f"ix_rekindle_job_{state}"), "rekindle_job")
    with op.batch_alter_table("rekindle_job", table_kwargs={"sqlite_autoincrement": True}) as job:
        job.alter_column("not_before_wall_ms", existing_type=sa.BigInteger(), nullable=True)
        for name in ("claimed_run", "alone", "max_retries", "error_count"):
            job.drop_column(name)
    for name, columns in _FORMER_INDEXES:
        op.create_index(op.f(name), "rekindle_job", columns)


def _create_job_crash() -> None:
    op.create_table(
        "rekindle_job_crash",
        sa.Column("id", _ROW_ID, autoincrement=True, nullable=False),
        sa.Column("job_id", sa.BigInteger(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("at_wall_ms", sa.BigInteger(), nullable=False),
        sa.Column("component_id", sa.Text(), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("signal", sa.Integer(), nullable=True),
        sa.Column("output", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rekindle_job_crash")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_rekindle_job_crash_job_id"), "rekindle_job_crash", ["job_id"])
