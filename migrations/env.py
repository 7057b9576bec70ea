"""Run by alembic; the open connection comes from `rekindle.persistence.schema.migrate`.

Only our own tables are compared: the database may belong to a host.
"""

from __future__ import annotations

from alembic import context

from rekindle.persistence.schema.migrate import VERSION_TABLE
from rekindle.persistence.schema.partial_indexes import whole_metadata
from rekindle.persistence.schema.tables import TABLE_PREFIX


def _is_ours(name: str | None, kind: str, _parents: object) -> bool:
    return kind != "table" or (name or "").startswith(TABLE_PREFIX)


context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=whole_metadata(),
    version_table=VERSION_TABLE,
    include_name=_is_ours,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
