"""The triggers of the job table can no longer be led to tables and operators of another role.

They run with the rights of their owner, and a worker's role may change jobs. PostgreSQL looks into the
temporary tables of a session first, so that a worker could put a table of its own, with a trigger, in the
place of ours. Names are looked for in the system's schema and in ours now, and there last; and texts are put
together by functions that are named with their schema, not by an operator that a schema may have, too.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

FUNCTIONS = (
    "rekindle_job_ended", "rekindle_job_reopened", "rekindle_job_deleted",
    "rekindle_job_tally_changed", "rekindle_job_tally_added", "rekindle_job_tally_deleted",
)  # fmt: skip

_REASON = "'job ' || NEW.id || ', which it comes after, is ' || NEW.state"
_HOW = "CASE NEW.state WHEN 'error' THEN 'has failed' WHEN 'expired' THEN 'has expired' ELSE {other} END"
_SQLITE = {
    _REASON: "'job ' || NEW.id || ', which it comes after, ' || " + _HOW.format(other="'is ' || NEW.state")
}
_POSTGRES = {
    _REASON: f"""pg_catalog.concat('job ', NEW.id, ', which it comes after, ',
        {_HOW.format(other="pg_catalog.concat('is ', NEW.state)")})""",
    """'{"id":' || batch.id || ', "total":' || batch.total || ', "done":' || batch.done
        || ', "failed":' || batch.failed || '}'""": """pg_catalog.concat('{"id":', batch.id,
        ', "total":', batch.total, ', "done":', batch.done, ', "failed":', batch.failed, '}')""",
    "PERFORM pg_notify(": "PERFORM pg_catalog.pg_notify(",
}


def upgrade() -> None:
    """Change the functions, and the sentence about a job that is cancelled because of another."""
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        for name in FUNCTIONS:
            _secure(connection, name)
        return
    source = sa.text("SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name = 'rekindle_job_ended'")
    trigger = _with(connection.execute(source).scalar_one(), _SQLITE)
    connection.exec_driver_sql("DROP TRIGGER rekindle_job_ended")
    connection.exec_driver_sql(trigger)


def _secure(connection: sa.Connection, name: str) -> None:
    found = sa.text(
        """SELECT prosrc, CAST(CAST(pronamespace AS regnamespace) AS text) FROM pg_proc
        WHERE oid = CAST(:name AS regproc)"""
    )
    source, schema = connection.execute(found, {"name": name}).one()
    connection.exec_driver_sql(
        f"""CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
        SET search_path = pg_catalog, {schema}, pg_temp AS $body${_with(source, _POSTGRES)}$body$"""
    )


def _with(source: str, replaced: dict[str, str]) -> str:
    for old, new in replaced.items():
        source = source.replace(old, new)
    return source


def downgrade() -> None:
    """Nothing: the older version works with them, too."""
