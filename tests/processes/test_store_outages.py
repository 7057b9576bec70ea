"""The database is locked, full or far away: supervision goes on, and nothing is lost."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tests.contract.mounts import small_file_system
from tests.processes.conftest import Rows, Run
from tests.processes.policies import sleeper
from tests.processes.waiting import PATIENCE_S, eventually
from tests.services import PostgresService

from rekindle.actors import EventStream, Status, System
from rekindle.actors.facts.records import EventRecord
from rekindle.actors.messages import Snapshot, StoreDegraded, StoreRecovered, WorkerDied
from rekindle.persistence import open_store


@contextmanager
def locked(database: Path) -> Iterator[None]:
    """Another writer holds the database."""
    with closing(sqlite3.connect(database, isolation_level=None, timeout=10)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def kill(system: System, id_: str = "sleeper") -> None:
    """Kill the worker and wait for its next life."""
    alive = system.wait_for(id_, Status.HEALTHY, timeout_s=PATIENCE_S)
    assert alive.pid is not None
    os.kill(alive.pid, signal.SIGKILL)
    system.wait_until(
        id_, lambda w: w.generation > alive.generation and w.status is Status.HEALTHY, PATIENCE_S
    )


def test_f19_a_locked_database_delays_restarts_a_little_and_loses_no_count(
    run: Run, rows: Rows, database: Path
) -> None:
    system = run(sleeper(), busy_timeout_ms=100)
    kill(system)
    with system.events() as events:
        with locked(database):
            kill(system)
            kill(system)
            report = system.report()
            assert "locked" in (report.degraded or "")
            assert report.unsaved > 0
            assert report.workers[0].restart_count == 3
            assert rows.restart_count("sleeper") == 1
            events.until(lambda event: isinstance(event, StoreDegraded), PATIENCE_S)
        events.until(lambda event: isinstance(event, StoreRecovered), PATIENCE_S)
    assert (system.report().degraded, system.report().unsaved) == (None, 0)
    assert rows.restart_count("sleeper") == len(rows.deaths("sleeper")) == 3
    assert is_whole(system)


def is_whole(system: System) -> bool:
    """Whether the log of events has no gap, every death in it, and the outage."""
    assert eventually(lambda: "store_recovered" in [each.type for each in log(system)])
    types = [each.type for each in log(system)]
    assert [each.id for each in log(system)] == list(range(1, len(types) + 1))
    assert types.count("worker_died") == len(system.deaths("sleeper"))
    return types.index("store_degraded") < types.index("store_recovered")


def log(system: System) -> tuple[EventRecord, ...]:
    """All stored events."""
    return system.event_log(0, 10_000).events


def test_f19_what_waited_is_written_when_the_system_stops(run: Run, rows: Rows, database: Path) -> None:
    system = run(sleeper(), busy_timeout_ms=100)
    system.wait_for("sleeper", Status.HEALTHY, timeout_s=PATIENCE_S)
    with locked(database):
        kill(system)
    system.stop()
    assert rows.restart_count("sleeper") == len(rows.deaths("sleeper")) == 1


def test_f19_a_stop_while_the_database_is_locked_ends_in_time(run: Run, database: Path) -> None:
    system = run(sleeper(), busy_timeout_ms=100)
    system.wait_for("sleeper", Status.HEALTHY, timeout_s=PATIENCE_S)
    with locked(database):
        kill(system)
        assert [result.gone for result in system.stop()] == [True]


def test_f20_a_full_disk_degrades_and_is_forgotten_once_there_is_space(
    tmp_path: Path, marks: list[str], no_traces: None
) -> None:
    with small_file_system(tmp_path / "mount", "1m") as mount:
        database, ballast = mount / "rekindle.db", mount / "ballast"
        with System([sleeper()], store=open_store(database)) as system:
            marks.append(system.mark)
            kill(system)
            fill(ballast)
            with system.events() as events:
                # The write-ahead log may have room for a few records more.
                while not degraded(events):
                    kill(system)
            kill(system)
            ballast.unlink()
            assert eventually(lambda: system.report().degraded is None)
            count = system.status("sleeper").restart_count
        rows = Rows(database)
        assert rows.restart_count("sleeper") == len(rows.deaths("sleeper")) == count
        assert rows("PRAGMA quick_check") == [("ok",)]


def degraded(events: EventStream) -> bool:
    """Whether the store has refused something lately, for want of space."""
    refusals = [event.reason for event in events.within(0.05) if isinstance(event, StoreDegraded)]
    assert all("full" in reason or "I/O" in reason for reason in refusals)
    return bool(refusals)


def fill(ballast: Path) -> None:
    """Leave no space on the file system."""
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            return


def test_f24_events_go_on_while_postgresql_is_stopped_and_are_written_when_it_is_back(
    postgres_service: PostgresService, postgres_url: str, marks: list[str], no_traces: None
) -> None:
    """F24, for subscribers: published at once, stored later, under the same numbers."""
    with System([sleeper()], store=open_store(postgres_url)) as system:
        marks.append(system.mark)
        kill(system)
        with system.events("event:*") as events:
            assert isinstance(events.next(PATIENCE_S), Snapshot)
            postgres_service.stop()
            try:
                kill(system)
                told = events.until(lambda each: isinstance(each.event, WorkerDied), PATIENCE_S)
                kill(system)
            finally:
                postgres_service.start()
            assert eventually(lambda: system.report().degraded is None, 60)
        assert not told.kept
        assert is_whole(system)
        assert told.record in log(system)


def test_a_system_keeps_its_history_in_postgresql(
    postgres_url: str, marks: list[str], no_traces: None
) -> None:
    with System([sleeper()], store=open_store(postgres_url)) as system:
        marks.append(system.mark)
        kill(system)
        kill(system)
        assert [death.signal for death in system.deaths("sleeper")] == [9, 9]
    with System([sleeper()], store=open_store(postgres_url)) as again:
        marks.append(again.mark)
        assert again.status("sleeper").restart_count == 2
        kill(again)
        assert again.status("sleeper").restart_count == 3
