"""Restart history, health mirror, settings, jobs and events."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_ROW_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Create the six tables."""
    _create_restart_policy()
    _create_death()
    _create_health_and_meta()
    _create_job()
    _create_event()


def downgrade() -> None:
    """Drop the tables with all their rows."""
    for table in ("event", "job", "meta", "health", "death", "worker_restart_policy"):
        op.drop_table(f"rekindle_{table}")


def _create_restart_policy() -> None:
    op.create_table(
        "rekindle_worker_restart_policy",
        sa.Column("component_id", sa.Text(), nullable=False),
        sa.Column("restart_count", sa.Integer(), nullable=False),
        sa.Column("streak_count", sa.Integer(), nullable=False),
        sa.Column("last_restart_wall_ms", sa.BigInteger(), nullable=True),
        sa.Column("failed_at_wall_ms", sa.BigInteger(), nullable=True),
        sa.Column("failure_reason", sa.Text(), nullable=True),
        sa.Column("updated_at_wall_ms", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "restart_count >= 0", name=op.f("ck_rekindle_worker_restart_policy_restart_count")
        ),
        sa.CheckConstraint("streak_count >= 0", name=op.f("ck_rekindle_worker_restart_policy_streak_count")),
        sa.PrimaryKeyConstraint("component_id", name=op.f("pk_rekindle_worker_restart_policy")),
    )


def _create_death() -> None:
    op.create_table(
        "rekindle_death",
        sa.Column("id", _ROW_ID, autoincrement=True, nullable=False),
        sa.Column("component_id", sa.Text(), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("died_at_wall_ms", sa.BigInteger(), nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("signal", sa.Integer(), nullable=True),
        sa.Column("uptime_ms", sa.BigInteger(), nullable=False),
        sa.Column("job", sa.Text(), nullable=True),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("delay_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rekindle_death")),
        sa.UniqueConstraint(
            "component_id", "generation", name=op.f("uq_rekindle_death_component_id_generation")
        ),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_rekindle_death_signal"), "rekindle_death", ["signal"])


def _create_health_and_meta() -> None:
    op.create_table(
        "rekindle_health",
        sa.Column("component_id", sa.Text(), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=True),
        sa.Column("current_job", sa.Text(), nullable=True),
        sa.Column("last_heartbeat_wall_ms", sa.BigInteger(), nullable=True),
        sa.Column("updated_at_wall_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("component_id", name=op.f("pk_rekindle_health")),
    )
    op.create_table(
        "rekindle_meta",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_rekindle_meta")),
    )


def _create_job() -> None:
    op.create_table(
        "rekindle_job",
        sa.Column("id", _ROW_ID, autoincrement=True, nullable=False),
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("not_before_wall_ms", sa.BigInteger(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("crash_count", sa.Integer(), nullable=False),
        sa.Column("claimed_by", sa.Text(), nullable=True),
        sa.Column("claimed_generation", sa.BigInteger(), nullable=True),
        sa.Column("created_at_wall_ms", sa.BigInteger(), nullable=False),
        sa.Column("started_at_wall_ms", sa.BigInteger(), nullable=True),
        sa.Column("finished_at_wall_ms", sa.BigInteger(), nullable=True),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("toxic_since_wall_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rekindle_job")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        op.f("ix_rekindle_job_queue_state_priority_not_before_wall_ms"),
        "rekindle_job",
        ["queue", "state", "priority", "not_before_wall_ms"],
    )
    op.create_index(
        op.f("ix_rekindle_job_claimed_by_claimed_generation"),
        "rekindle_job",
        ["claimed_by", "claimed_generation"],
    )


def _create_event() -> None:
    op.create_table(
        "rekindle_event",
        sa.Column("id", _ROW_ID, autoincrement=True, nullable=False),
        sa.Column("schema_version", sa.Integer(), nullable=False),
        sa.Column("at_wall_ms", sa.BigInteger(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("component_id", sa.Text(), nullable=True),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rekindle_event")),
        sqlite_autoincrement=True,
    )
