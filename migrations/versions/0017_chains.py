"""Jobs that come after others, and batches with a job at their end.

Triggers, because a job ends in many ways: by its worker, by the supervisor after a death, by an operator, by
its time. Whatever ends it, the jobs after it are released or cancelled in the same transaction.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

COLUMNS = ("waits_for", "followed", "failed_by", "batch_id", "batch_counts")
INDEXES = ("failed_by", "batch_id")

_OPEN = "('pending', 'running', 'waiting')"
_ENDED = f"NEW.followed = 1 AND OLD.state IN {_OPEN} AND NEW.state NOT IN {_OPEN}"
_REOPENED = f"NEW.followed = 1 AND OLD.state NOT IN {_OPEN} AND OLD.state <> 'done' AND NEW.state IN {_OPEN}"

_RELEASE = """
UPDATE rekindle_job SET waits_for = waits_for - 1,
    state = CASE WHEN waits_for = 1 AND state = 'waiting' THEN 'pending' ELSE state END
WHERE NEW.state = 'done'
    AND id IN (SELECT link.job_id FROM rekindle_job_after AS link WHERE link.after_id = NEW.id)"""

_CANCEL = """
UPDATE rekindle_job SET state = 'cancelled', failed_by = NEW.id,
    finished_at_wall_ms = NEW.finished_at_wall_ms,
    error = 'job ' || NEW.id || ', which it comes after, is ' || NEW.state
WHERE NEW.state <> 'done' AND state = 'waiting' AND id IN (
    WITH RECURSIVE later(id) AS (
        SELECT link.job_id FROM rekindle_job_after AS link WHERE link.after_id = NEW.id
        UNION
        SELECT link.job_id FROM rekindle_job_after AS link JOIN later ON link.after_id = later.id
    )
    SELECT later.id FROM later
)"""

_OF_BATCH = """
(SELECT count(*) FROM rekindle_job AS job
 WHERE job.failed_by = NEW.id AND job.state = 'cancelled' AND job.batch_id = rekindle_batch.id)"""
_BATCHES = """
SELECT job.batch_id FROM rekindle_job AS job WHERE job.failed_by = NEW.id AND job.batch_id IS NOT NULL"""

_COUNT = f"""
UPDATE rekindle_batch SET
    done = done + CASE WHEN id = NEW.batch_id AND NEW.state = 'done' THEN 1 ELSE 0 END,
    failed = failed + CASE WHEN id = NEW.batch_id AND NEW.state <> 'done' THEN 1 ELSE 0 END + {_OF_BATCH}
WHERE id = NEW.batch_id OR id IN ({_BATCHES})"""

_FINISH = f"""
UPDATE rekindle_job SET state = 'pending', batch_counts = (
    SELECT '{{"id"|' || batch.id || ', "total"|' || batch.total || ', "done"|' || batch.done
        || ', "failed"|' || batch.failed || '}}'
    FROM rekindle_batch AS batch WHERE batch.callback_id = rekindle_job.id
)
WHERE state = 'waiting' AND id IN (
    SELECT batch.callback_id FROM rekindle_batch AS batch
    WHERE batch.done + batch.failed = batch.total AND (batch.id = NEW.batch_id OR batch.id IN ({_BATCHES}))
)"""

_UNCOUNT = f"""
UPDATE rekindle_batch SET
    failed = failed - CASE WHEN id = NEW.batch_id THEN 1 ELSE 0 END - {_OF_BATCH}
WHERE id = NEW.batch_id OR id IN ({_BATCHES})"""

_REVIVE = """
UPDATE rekindle_job
SET state = 'waiting', failed_by = NULL, error = NULL, finished_at_wall_ms = NULL
WHERE failed_by = NEW.id AND state = 'cancelled'"""


def upgrade() -> None:
    """Add the columns, the tables and the triggers."""
    for column in _columns():
        op.add_column("rekindle_job", column)
    for name in INDEXES:
        where = sa.text(f"{name} IS NOT NULL")
        op.create_index(
            op.f(f"ix_rekindle_job_{name}"),
            "rekindle_job",
            [name],
            sqlite_where=where,
            postgresql_where=where,
        )
    op.create_table(
        "rekindle_job_after",
        sa.Column("after_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("job_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("after_id", "job_id", name=op.f("pk_rekindle_job_after")),
    )
    op.create_index(op.f("ix_rekindle_job_after_job_id"), "rekindle_job_after", ["job_id"])
    op.create_table(
        "rekindle_batch",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("done", sa.Integer(), nullable=False),
        sa.Column("failed", sa.Integer(), nullable=False),
        sa.Column("callback_id", sa.BigInteger(), nullable=True),
        sa.Column("created_at_wall_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rekindle_batch")),
        sqlite_autoincrement=True,
    )
    statements = _postgres() if op.get_bind().dialect.name == "postgresql" else _sqlite()
    for statement in statements:
        op.get_bind().exec_driver_sql(statement.replace('"|', '":'))


def _columns() -> tuple[sa.Column[Any], ...]:
    return (
        sa.Column("waits_for", sa.Integer(), nullable=True),
        sa.Column("followed", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("failed_by", sa.BigInteger(), nullable=True),
        sa.Column("batch_id", sa.BigInteger(), nullable=True),
        sa.Column("batch_counts", sa.Text(), nullable=True),
    )


def _sqlite() -> tuple[str, ...]:
    def trigger(name: str, condition: str, *steps: str) -> str:
        body = ";".join(steps)
        return (
            f"CREATE TRIGGER {name} AFTER UPDATE OF state ON rekindle_job WHEN {condition} BEGIN {body}; END"
        )

    deleted = """CREATE TRIGGER rekindle_job_deleted AFTER DELETE ON rekindle_job
        WHEN OLD.waits_for IS NOT NULL BEGIN DELETE FROM rekindle_job_after WHERE job_id = OLD.id; END"""
    return (
        trigger("rekindle_job_ended", _ENDED, _RELEASE, _CANCEL, _COUNT, _FINISH),
        trigger("rekindle_job_reopened", _REOPENED, _UNCOUNT, _REVIVE),
        deleted,
    )


def _postgres() -> tuple[str, ...]:
    """The same as functions, with the rights of their owner: a worker's role may not touch the new tables.

    A job may be added after one that is being cancelled: it is seen once its transaction has ended, so the
    cancellation is repeated until there is nothing more. Only the outermost change has triggers.
    """
    locked = """PERFORM 1 FROM rekindle_job WHERE id IN (
        SELECT link.job_id FROM rekindle_job_after AS link WHERE link.after_id = NEW.id
    ) ORDER BY id FOR UPDATE"""
    cancelled = f"LOOP {_CANCEL}; EXIT WHEN NOT FOUND; END LOOP"

    def function(name: str, *steps: str) -> str:
        body = "; ".join(steps)
        return f"""CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
            SET search_path FROM CURRENT AS $body$ BEGIN {body}; RETURN NULL; END $body$"""

    def trigger(name: str, event: str, condition: str) -> str:
        return f"""CREATE TRIGGER {name} AFTER {event} ON rekindle_job FOR EACH ROW
            WHEN ({condition}) EXECUTE FUNCTION {name}()"""

    return (
        function(
            "rekindle_job_ended",
            locked,
            _RELEASE,
            cancelled,
            _COUNT,
            _FINISH,
            "PERFORM pg_notify('rekindle_jobs', '')",
        ),
        function("rekindle_job_reopened", _UNCOUNT, _REVIVE),
        function("rekindle_job_deleted", "DELETE FROM rekindle_job_after WHERE job_id = OLD.id"),
        trigger("rekindle_job_ended", "UPDATE OF state", f"pg_trigger_depth() = 0 AND {_ENDED}"),
        trigger("rekindle_job_reopened", "UPDATE OF state", f"pg_trigger_depth() = 0 AND {_REOPENED}"),
        trigger("rekindle_job_deleted", "DELETE", "OLD.waits_for IS NOT NULL"),
    )


def downgrade() -> None:
    """Remove them."""
    names = ("rekindle_job_ended", "rekindle_job_reopened", "rekindle_job_deleted")
    for name in names:
        if op.get_bind().dialect.name == "postgresql":
            op.execute(f"DROP TRIGGER {name} ON rekindle_job")
            op.execute(f"DROP FUNCTION {name}()")
        else:
            op.execute(f"DROP TRIGGER {name}")
    op.drop_table("rekindle_batch")
    op.drop_table("rekindle_job_after")
    for name in INDEXES:
        op.drop_index(op.f(f"ix_rekindle_job_{name}"), "rekindle_job")
    for name in reversed(COLUMNS):
        op.drop_column("rekindle_job", name)
