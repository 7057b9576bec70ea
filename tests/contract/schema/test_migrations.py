"""The tables: made once, equal to the models, refused when they are from the future."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import psycopg
import pytest
from alembic import command
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, inspect, text
from tests.contract.processes import Opener
from tests.contract.records import death, known

from rekindle.actors.errors import StoreTooNewError
from rekindle.actors.facts.jobs import NewJob
from rekindle.persistence import open_store
from rekindle.persistence.schema.migrate import (
    COMPATIBLE_FROM,
    REVISIONS,
    VERSION_TABLE,
    alembic_config,
    downgrade,
    upgrade,
)
from rekindle.persistence.schema.models import Model
from rekindle.persistence.schema.tables import JOB
from rekindle.persistence.store import SqlStore


def tables(engine: Engine) -> set[str]:
    with engine.connect() as connection:
        return set(inspect(connection).get_table_names())


OURS = {*Model.metadata.tables, VERSION_TABLE}


def test_ps_14_a_fresh_database_gets_the_tables(sql_store: SqlStore, rows: Engine) -> None:
    # SQLite keeps its own book on the ids that it gave out.
    assert tables(rows) - {"sqlite_sequence"} == OURS


def test_ps_14_downgrade_and_upgrade_again_works(sql_store: SqlStore, rows: Engine) -> None:
    engine = sql_store._writer
    downgrade(engine)
    assert tables(rows) - {"sqlite_sequence"} == {VERSION_TABLE}
    upgrade(engine, "test")
    sql_store.commit([death(1)])
    assert known(sql_store).restart_count == 1


STATES = ("pending", "running", "done", "done", "error", "toxic", "cancelled", "expired", "waiting")


def test_a_database_with_jobs_gets_the_figures_that_they_have(
    sql_store: SqlStore, rows: Engine, address: str
) -> None:
    """Revision 0018 counts what is there; its triggers count on from then."""
    sql_store.close()
    downgrade(rows, "0017")
    row = {"queue": "tag", "payload": "{}", "priority": 0, "not_before_wall_ms": 0, "attempts": 1}
    row |= {"crash_count": 0, "error_count": 0, "alone": 0, "created_at_wall_ms": 0, "followed": 0}
    times = {"started_at_wall_ms": 1000, "finished_at_wall_ms": 3000, "claimed_by": "worker:tag:0"}
    with rows.begin() as connection:
        for state in STATES:
            connection.execute(JOB.insert(), {**row, **times, "state": state})
        connection.execute(JOB.insert(), {**row, **times, "queue": "mail", "state": "done"})
    upgraded = open_store(address)
    mail, tag = upgraded.jobs.stats()
    assert (mail.completed, tag.completed, tag.average_s) == (1, 2, 2.0)
    ended = (tag.pending, tag.running, tag.errors, tag.toxic, tag.cancelled, tag.expired, tag.waiting)
    assert ended == (1, 1, 1, 1, 1, 1, 1)
    failed = [job.id for job in upgraded.jobs.find(state="error")]
    upgraded.jobs.retry(failed)
    upgraded.jobs.cancel(failed)
    upgraded.jobs.drop([job.id for job in upgraded.jobs.find(queue="tag", state="done")])
    (_, tag) = upgraded.jobs.stats()
    assert (tag.completed, tag.errors, tag.cancelled) == (0, 0, 2)
    upgraded.close()


def test_a_database_with_chains_tells_how_the_job_before_ended(
    sql_store: SqlStore, rows: Engine, address: str
) -> None:
    first, second = sql_store.jobs.add("tag", [NewJob(payload="{}"), NewJob(payload="{}")])
    (third,) = sql_store.jobs.add("tag", [NewJob(payload="{}", after=(first, second))])
    sql_store.close()
    downgrade(rows, "0019")
    upgraded = open_store(address)
    with rows.begin() as connection:
        connection.execute(JOB.update().where(JOB.c.id == first).values(state="done"))
        connection.execute(JOB.update().where(JOB.c.id == second).values(state="error"))
    assert upgraded.jobs.get(third).error == f"job {second}, which it comes after, has failed"
    upgraded.close()


def test_a_function_with_the_rights_of_its_owner_cannot_be_led_elsewhere(postgres_url: str) -> None:
    """Neither to temporary tables, which come last, nor to operators that another schema may have, too."""
    open_store(postgres_url).close()
    with psycopg.connect(postgres_url) as connection:
        found = connection.execute(
            "SELECT proname, prosrc, proconfig FROM pg_proc WHERE prosecdef AND proname LIKE 'rekindle%'"
        ).fetchall()
    assert len(found) >= 6
    for name, source, settings in found:
        assert settings == ["search_path=pg_catalog, public, pg_temp"], name
        assert "||" not in source, name


def test_the_models_equal_the_migrations(sql_store: SqlStore) -> None:
    with sql_store._writer.begin() as connection:
        command.check(alembic_config(connection))


def test_the_list_of_revisions_equals_the_migrations(sql_store: SqlStore) -> None:
    with sql_store._writer.begin() as connection:
        script = ScriptDirectory.from_config(alembic_config(connection))
    assert tuple(reversed([one.revision for one in script.walk_revisions()])) == REVISIONS
    assert script.get_current_head() == REVISIONS[-1]


def columns(engine: Engine) -> dict[tuple[str, str], tuple[str, bool]]:
    """By table and column: the type, and whether a row may leave it out."""
    with engine.connect() as connection:
        found = inspect(connection)
        return {
            (table, each["name"]): (str(each["type"]), each["nullable"] or each["default"] is not None)
            for table in OURS & set(found.get_table_names())
            for each in found.get_columns(table)
        }


def test_what_came_after_the_oldest_compatible_revision_takes_nothing_from_older_nodes(
    sql_store: SqlStore, rows: Engine
) -> None:
    """Nodes of that revision go on with the newest tables: raise COMPATIBLE_FROM if they cannot."""
    newest = columns(rows)
    downgrade(sql_store._writer, COMPATIBLE_FROM)
    older = columns(rows)
    upgrade(sql_store._writer, "test")
    assert {column for column in older if newest.get(column) != older[column]} == set()
    old_tables = {table for table, _ in older}
    added = {column: known for column, known in newest.items() if column not in older}
    assert {column for column, known in added.items() if column[0] in old_tables and not known[1]} == set()


def test_the_tables_of_a_host_are_left_alone(address: str, host_tables: Engine) -> None:
    store = open_store(address)
    with store._writer.begin() as connection:
        command.check(alembic_config(connection))
    store.close()
    with host_tables.connect() as connection:
        assert connection.scalar(text("SELECT version_num FROM alembic_version")) == "of the host"
    assert tables(host_tables) - {"sqlite_sequence"} == {*OURS, "alembic_version"}


@pytest.fixture
def host_tables(address: str) -> Iterator[Engine]:
    """A database in which a host has its own alembic version table, and nothing of ours."""
    store = open_store(address, exclusive=False)
    store.close()
    engine = store._writer
    downgrade(engine)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE alembic_version (version_num TEXT)"))
        connection.execute(text("INSERT INTO alembic_version VALUES ('of the host')"))
    yield engine
    engine.dispose()


def test_f23_a_database_newer_than_the_code_is_refused_in_a_sentence(
    sql_store: SqlStore, rows: Engine, address: str
) -> None:
    sql_store.close()
    with rows.begin() as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    said = rf"newer Rekindle \(its revision is 9999, the latest known here is {REVISIONS[-1]}\)$"
    with pytest.raises(StoreTooNewError, match=said):
        open_store(address)


def opened_by_eight_at_once(address: str) -> list[str]:
    openers = [Opener(address, exclusive=False) for _ in range(8)]
    for opener in openers:
        opener.go()
    told = [opener.told() for opener in openers]
    for opener in openers:
        opener.end()
    return sorted(told)


def test_f23_eight_first_starts_at_once_make_the_tables_once(address: str) -> None:
    told = opened_by_eight_at_once(address)
    # On PostgreSQL by alembic, which only the process that migrates has to load.
    by_alembic = address.startswith("postgresql")
    assert told == ["open False"] * 7 + [f"open {by_alembic}"]
    store = open_store(address)
    assert tables(store._writer) - {"sqlite_sequence"} == OURS
    store.close()


def test_f23_eight_starts_at_once_upgrade_an_older_database_once(address: str) -> None:
    store = open_store(address)
    downgrade(store._writer, REVISIONS[-2])
    store.close()
    assert opened_by_eight_at_once(address) == ["open False"] * 7 + ["open True"]


def test_a_store_that_is_up_to_date_is_opened_without_alembic(sql_store: SqlStore, address: str) -> None:
    opener = Opener(address, exclusive=False)
    opener.go()
    assert opener.told() == "open False"
    opener.end()


def test_importing_the_package_loads_no_sqlalchemy() -> None:
    script = "import sys, rekindle.persistence; print({'sqlalchemy', 'alembic'} & sys.modules.keys())"
    env = {"PYTHONPATH": ":".join(sys.path)}
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=env
    )
    assert result.stdout == "set()\n"
