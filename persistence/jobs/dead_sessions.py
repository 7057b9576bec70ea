"""Sessions of the dead are ended before what they claimed is released; only PostgreSQL has such."""

from __future__ import annotations

import time

from sqlalchemy import Connection, text

from rekindle.actors.errors import StoreUnavailableError
from rekindle.actors.facts.records import ClaimsReleased, FormerClaimsReleased
from rekindle.worker.jobs import session_name

PATIENCE_S = 2.0
GLANCE_S = 0.005

_OURS = "datname = current_database() AND pid <> pg_backend_pid()"
# Not one statement: what is seen of the sessions stays as it is until it is cleared.
_CLEAR = text("SELECT pg_stat_clear_snapshot()")
_END_ONE = text(
    f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {_OURS} AND application_name = :name"
)
_END_FORMER = text(
    f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {_OURS}"
    " AND starts_with(application_name, :all) AND NOT starts_with(application_name, :name)"
)


def end_sessions(connection: Connection, gone: ClaimsReleased | FormerClaimsReleased) -> None:
    """Have the sessions of those who are gone ended, and wait until they are.

    Raises:
        StoreUnavailableError: the server does not come to it now; what they claimed is not known yet.
    """
    if connection.dialect.name != "postgresql":
        return
    if isinstance(gone, ClaimsReleased):
        statement = _END_ONE
        names = {"name": session_name.of_worker(gone.component_id, gone.generation, gone.run)}
    else:
        statement, names = _END_FORMER, {"all": session_name.PREFIX, "name": session_name.of_run(gone.run)}
    deadline = time.monotonic() + PATIENCE_S
    while connection.execute(statement, names).first() is not None:
        if time.monotonic() > deadline:
            raise StoreUnavailableError("sessions of workers that are gone do not end")
        time.sleep(GLANCE_S)
        connection.execute(_CLEAR)
