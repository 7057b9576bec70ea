"""Workers that serve queues with a role of their own, made by the SQL of the manual."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url
from tests.processes.test_jobs import ends, job_worker

from rekindle.actors import System
from rekindle.persistence import open_store

MANUAL = Path(__file__).parents[2] / "persistence" / "README.md"


def address_of(role: str, url: str) -> str:
    """The address of the same database for another role."""
    return make_url(url).set(username=role).render_as_string(hide_password=False)


def test_a_worker_s_role_serves_queues_and_can_read_nothing_else(postgres_url: str, no_traces: None) -> None:
    statements = MANUAL.read_text().partition("```sql\n")[2].partition("```")[0]
    own, of_worker = (address_of(role, postgres_url) for role in ("rekindle", "rekindle_worker"))
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        database = make_url(postgres_url).database
        admin.execute("DROP ROLE IF EXISTS rekindle, rekindle_worker")
        admin.execute("CREATE ROLE rekindle LOGIN")
        admin.execute(f"ALTER DATABASE {database} OWNER TO rekindle".encode())
        open_store(own).close()
        admin.execute(statements.encode())
        with System([job_worker()], store=open_store(own, worker_database=of_worker)) as system:
            ends(system, system.enqueue("tag", {}))
            job = ends(system, system.enqueue("tag", {"do": "die until", "attempt": 2}))
            assert job.attempts == 2
        with psycopg.connect(of_worker, autocommit=True) as worker:
            for statement in (
                "SELECT * FROM rekindle_death",
                "UPDATE rekindle_worker_restart_policy SET restart_count = 0",
                "DELETE FROM rekindle_job",
                "UPDATE rekindle_meta SET value = ''",
            ):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    worker.execute(statement.encode())
        admin.execute(f"ALTER DATABASE {database} OWNER TO CURRENT_USER".encode())
        for role in ("rekindle_worker", "rekindle"):
            admin.execute(f"REASSIGN OWNED BY {role} TO CURRENT_USER; DROP OWNED BY {role}".encode())
            admin.execute(f"DROP ROLE {role}".encode())
