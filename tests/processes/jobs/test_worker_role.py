"""Workers that serve queues with a role of their own, made by the SQL of the manual."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url
from tests.processes.jobs.test_jobs import ends, job_worker

from rekindle.actors import System
from rekindle.actors.facts.jobs import NewJob
from rekindle.actors.facts.records import MetaSet
from rekindle.persistence import open_store

MANUAL = Path(__file__).parents[3] / "persistence" / "README.md"


def address_of(role: str, url: str) -> str:
    """The address of the same database for another role."""
    return make_url(url).set(username=role).render_as_string(hide_password=False)


@pytest.fixture
def roles(empty_postgres_url: str) -> Iterator[tuple[str, str]]:
    """The addresses of the supervisor's role and of the workers', made by the SQL of the manual."""
    statements = MANUAL.read_text().partition("```sql\n")[2].partition("```")[0]
    own, of_worker = (address_of(role, empty_postgres_url) for role in ("rekindle", "rekindle_worker"))
    with psycopg.connect(empty_postgres_url, autocommit=True) as admin:
        database = make_url(empty_postgres_url).database
        admin.execute("DROP ROLE IF EXISTS rekindle, rekindle_worker")
        admin.execute("CREATE ROLE rekindle LOGIN")
        admin.execute(f"ALTER DATABASE {database} OWNER TO rekindle".encode())
        open_store(own).close()
        admin.execute(statements.encode())
        yield own, of_worker
        admin.execute(f"ALTER DATABASE {database} OWNER TO CURRENT_USER".encode())
        for role in ("rekindle_worker", "rekindle"):
            admin.execute(f"REASSIGN OWNED BY {role} TO CURRENT_USER; DROP OWNED BY {role}".encode())
            admin.execute(f"DROP ROLE {role}".encode())


def test_a_worker_s_role_serves_queues_and_can_read_nothing_else(
    roles: tuple[str, str], no_traces: None
) -> None:
    own, of_worker = roles
    with System([job_worker()], store=open_store(own, worker_database=of_worker)) as system:
        ends(system, system.enqueue("tag", {}))
        job = ends(system, system.enqueue("tag", {"do": "die until", "attempt": 2}))
        assert job.attempts == 2
    with psycopg.connect(of_worker, autocommit=True) as worker:
        for statement in (
            "SELECT * FROM rekindle_death",
            "SELECT * FROM rekindle_job_tally",
            "SELECT * FROM rekindle_batch",
            "UPDATE rekindle_worker_restart_policy SET restart_count = 0",
            "DELETE FROM rekindle_job",
            "UPDATE rekindle_meta SET value = ''",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                worker.execute(statement.encode())


def test_what_follows_a_job_happens_although_its_worker_s_role_may_not_do_it(
    roles: tuple[str, str], no_traces: None
) -> None:
    """The triggers of the job table release chained jobs, and count batches and figures, as their owner."""
    own, of_worker = roles
    with System([job_worker()], store=open_store(own, worker_database=of_worker)) as system:
        first = system.enqueue("tag", {})
        ends(system, system.enqueue("tag", {}, after=[first]))
        batch = system.batch("tag", [{}, {"do": "raise"}], then={})
        assert batch.callback_id is not None
        ends(system, batch.callback_id)
        (counts,) = system.jobs.batches(batch.id)
        assert (counts.done, counts.failed) == (1, 1)
        (figures,) = system.jobs.stats()
        assert (figures.completed, figures.errors, figures.waiting) == (4, 1, 0)


TRAPS = (
    """CREATE TEMP TABLE rekindle_job_tally (
        queue text, state text, part integer, many bigint, busy_ms bigint,
        PRIMARY KEY (queue, state, part))""",
    "CREATE TEMP TABLE rekindle_job_after (after_id bigint, job_id bigint)",
    """CREATE FUNCTION pg_temp.trap() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN UPDATE rekindle_meta SET value = 'trapped' WHERE key = 'system_mark'; RETURN NEW; END $$""",
    """CREATE TRIGGER trap BEFORE INSERT ON pg_temp.rekindle_job_tally
        FOR EACH ROW EXECUTE FUNCTION pg_temp.trap()""",
)
"""What a hostile worker makes for the triggers to run over: tables and a function of its own session."""


def test_a_worker_s_role_cannot_have_the_triggers_run_its_code_as_their_owner(
    roles: tuple[str, str],
) -> None:
    own, of_worker = roles
    store = open_store(own)
    (job,) = store.jobs.add("tag", [NewJob(payload="{}")])
    store.commit([MetaSet("system_mark", "sound")])
    with psycopg.connect(of_worker, autocommit=True) as worker:
        for statement in TRAPS:
            worker.execute(statement.encode())
        worker.execute("UPDATE rekindle_job SET state = 'done' WHERE id = %s", (job,))
    assert [figures.completed for figures in store.jobs.stats()] == [1]
    store.close()
    with psycopg.connect(own) as connection:
        marks = connection.execute("SELECT value FROM rekindle_meta WHERE key = 'system_mark'").fetchall()
    assert marks == [("sound",)]
