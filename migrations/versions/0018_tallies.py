"""Tallies of the jobs that are neither pending nor running: the figures of a queue need not count them.

On PostgreSQL every connection counts in rows of its own, so that no worker waits for the transaction of
another one.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

PARTS = 1024
"""How many connections count apart."""

_COUNTED = "{row}.state NOT IN ('pending', 'running')"
_BUSY = """CASE WHEN {row}.state = 'done' AND {row}.finished_at_wall_ms > {row}.started_at_wall_ms
    THEN {row}.finished_at_wall_ms - {row}.started_at_wall_ms ELSE 0 END"""
_CHANGED = f"OLD.state <> NEW.state AND ({_COUNTED.format(row='OLD')} OR {_COUNTED.format(row='NEW')})"


def _add(row: str, sign: str, part: str) -> str:
    return f"""INSERT INTO rekindle_job_tally (queue, state, part, many, busy_ms)
        SELECT {row}.queue, {row}.state, {part}, {sign}1, {sign}({_BUSY.format(row=row)})
        WHERE {_COUNTED.format(row=row)}
        ON CONFLICT (queue, state, part) DO UPDATE SET
            many = rekindle_job_tally.many + excluded.many,
            busy_ms = rekindle_job_tally.busy_ms + excluded.busy_ms"""


def _triggers(part: str) -> tuple[tuple[str, str, str, str], ...]:
    left, came = _add("OLD", "-", part), _add("NEW", "", part)
    return (
        ("rekindle_job_tally_changed", "UPDATE OF state", _CHANGED, f"{left}; {came}"),
        ("rekindle_job_tally_added", "INSERT", _COUNTED.format(row="NEW"), came),
        ("rekindle_job_tally_deleted", "DELETE", _COUNTED.format(row="OLD"), left),
    )


def upgrade() -> None:
    """Add the table with the present figures, and the triggers."""
    op.create_table(
        "rekindle_job_tally",
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("part", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("many", sa.BigInteger(), nullable=False),
        sa.Column("busy_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("queue", "state", "part", name=op.f("pk_rekindle_job_tally")),
    )
    op.execute(
        f"""INSERT INTO rekindle_job_tally (queue, state, part, many, busy_ms)
        SELECT job.queue, job.state, 0, count(*), sum({_BUSY.format(row="job")})
        FROM rekindle_job AS job WHERE {_COUNTED.format(row="job")} GROUP BY job.queue, job.state"""
    )
    if op.get_bind().dialect.name == "postgresql":
        statements = _postgres()
    else:
        statements = tuple(
            f"CREATE TRIGGER {name} AFTER {event} ON rekindle_job WHEN {condition} BEGIN {body}; END"
            for name, event, condition, body in _triggers("0")
        )
    for statement in statements:
        op.get_bind().exec_driver_sql(statement)


def _postgres() -> tuple[str, ...]:
    """As functions with the rights of their owner: a worker's role may not touch the new table."""
    return tuple(
        statement
        for name, event, condition, body in _triggers(f"mod(pg_backend_pid(), {PARTS})")
        for statement in (
            f"""CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
                SET search_path FROM CURRENT AS $body$ BEGIN {body}; RETURN NULL; END $body$""",
            f"""CREATE TRIGGER {name} AFTER {event} ON rekindle_job FOR EACH ROW
                WHEN ({condition}) EXECUTE FUNCTION {name}()""",
        )
    )


def downgrade() -> None:
    """Remove them."""
    for name, *_ in _triggers("0"):
        if op.get_bind().dialect.name == "postgresql":
            op.execute(f"DROP TRIGGER {name} ON rekindle_job")
            op.execute(f"DROP FUNCTION {name}()")
        else:
            op.execute(f"DROP TRIGGER {name}")
    op.drop_table("rekindle_job_tally")
