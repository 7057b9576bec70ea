"""What is set for a queue as a whole: its pause, its limits, and the jobs that it gets by the clock."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

KEYED = "state = 'pending' AND key IS NOT NULL"

# Roles that may take jobs (`persistence/README.md`, "A role for workers") need the new tables too.
GRANT_AS_BEFORE = """
DO $$
DECLARE role_name text;
BEGIN
    FOR role_name IN
        SELECT DISTINCT pg_get_userbyid(entry.grantee) FROM pg_class, aclexplode(pg_class.relacl) AS entry
        WHERE pg_class.oid = 'rekindle_job'::regclass AND entry.privilege_type = 'UPDATE'
            AND entry.grantee NOT IN (0, pg_class.relowner)
    LOOP
        EXECUTE format('GRANT SELECT, UPDATE ON rekindle_queue TO %I', role_name);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON rekindle_queue_key TO %I', role_name);
    END LOOP;
END $$"""


def upgrade() -> None:
    """Add the tables, the column and its index."""
    op.create_table(
        "rekindle_queue",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("paused_at_wall_ms", sa.BigInteger(), nullable=True),
        sa.Column("paused_until_wall_ms", sa.BigInteger(), nullable=True),
        sa.Column("pause_reason", sa.Text(), nullable=True),
        sa.Column("concurrency", sa.Integer(), nullable=True),
        sa.Column("rate", sa.Integer(), nullable=True),
        sa.Column("rate_period_ms", sa.BigInteger(), nullable=True),
        sa.Column("key_concurrency", sa.Integer(), nullable=True),
        sa.Column("key_rate", sa.Integer(), nullable=True),
        sa.Column("key_rate_period_ms", sa.BigInteger(), nullable=True),
        sa.Column("bucket_full_us", sa.BigInteger(), nullable=False, server_default="0"),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_rekindle_queue")),
    )
    op.create_table(
        "rekindle_queue_key",
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("bucket_full_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("queue", "key", name=op.f("pk_rekindle_queue_key")),
    )
    op.create_table(
        "rekindle_periodic",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("schedule", sa.Text(), nullable=False),
        sa.Column("last_due_wall_ms", sa.BigInteger(), nullable=False),
        sa.Column("next_due_wall_ms", sa.BigInteger(), nullable=True),
        sa.Column("last_job_id", sa.BigInteger(), nullable=True),
        sa.Column("missed", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_rekindle_periodic")),
    )
    op.add_column("rekindle_job", sa.Column("key", sa.Text(), nullable=True))
    op.create_index(
        op.f("ix_rekindle_job_keyed"),
        "rekindle_job",
        ["queue", "key", "priority", "not_before_wall_ms", "id"],
        sqlite_where=sa.text(KEYED),
        postgresql_where=sa.text(KEYED),
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute(GRANT_AS_BEFORE)


def downgrade() -> None:
    """Remove them."""
    op.drop_index(op.f("ix_rekindle_job_keyed"), "rekindle_job")
    op.drop_column("rekindle_job", "key")
    for table in ("rekindle_periodic", "rekindle_queue_key", "rekindle_queue"):
        op.drop_table(table)
