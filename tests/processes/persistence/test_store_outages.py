"""The database is locked, full or far away: supervision goes on, and nothing is lost."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contract.mounts import small_file_system
from tests.processes.conftest import Rows, Run
from tests.processes.policies import QUICK, shell, sleeper
from tests.processes.waiting import PATIENCE_S, eventually
from tests.services import PostgresService

from rekindle.actors import EventStream, Status, System
from rekindle.actors.facts.health_status import ShownStatus
from rekindle.actors.facts.jobs import JobSettled
from rekindle.actors.facts.records import EventRecord, Record
from rekindle.actors.messages import GatewayLost, Snapshot, StoreDegraded, StoreRecovered, WorkerDied
from rekindle.actors.spec.policies.stop_policy import Urgency
from rekindle.actors.system import lifecycle
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


def test_what_cannot_be_written_at_a_stop_is_kept_beside_the_database_and_stored_at_the_next_start(
    run: Run, rows: Rows, database: Path
) -> None:
    """Ten records were lost, and only a line in the log said so."""
    unsaved = database.with_name(database.name + ".unsaved")
    system = System([sleeper()], store=open_store(database, busy_timeout_ms=100))
    with system, locked(database):
        system.start()
        kill(system)
        kill(system)
        system.escalate_stop(Urgency.KILL)  # as a second SIGTERM does: the stop does not wait for the store
        system.stop()
    assert rows.deaths("sleeper") == []
    assert unsaved.stat().st_mode & 0o077 == 0
    again = run(sleeper())
    assert not unsaved.exists()
    assert again.status("sleeper").restart_count == rows.restart_count("sleeper") == 2
    assert [signum for _, _, _, signum, _ in rows.deaths("sleeper")] == [9, 9]
    numbers = [number for (number,) in rows("SELECT id FROM rekindle_event ORDER BY id")]
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_worker_stays_failed_if_its_failure_is_kept_beside_a_database_that_is_still_locked(
    run: Run, rows: Rows, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next supervisor knew nothing of the file that it could not store yet, and started the worker."""
    monkeypatch.setattr(lifecycle, "WRITABLE_S", 0.3)
    fails = shell("fails", "exit 1", restart=replace(QUICK, max_in_window=1))
    with locked(opened_once(database)):
        system = System([fails], store=open_store(database, busy_timeout_ms=100))
        with system:
            system.start()
            assert eventually(lambda: system.status("fails").shown is ShownStatus.FAILED)
            system.escalate_stop(Urgency.KILL)
        again = run(fails, busy_timeout_ms=100)
        assert again.status("fails").shown is ShownStatus.FAILED
    assert eventually(lambda: again.report().unsaved == 0 and rows.deaths("fails") != [])
    again.stop()
    assert run(fails).status("fails").shown is ShownStatus.FAILED
    numbers = [number for (number,) in rows("SELECT id FROM rekindle_event ORDER BY id")]
    assert numbers == list(range(1, len(numbers) + 1))


def opened_once(database: Path) -> Path:
    """The path of a database that exists."""
    open_store(database).close()
    return database


def test_what_is_written_after_a_callback_of_the_stop_is_not_kept_as_well(
    rows: Rows, database: Path, marks: list[str]
) -> None:
    """The records were committed and kept, and the next start applied them again."""
    other = sqlite3.connect(database, isolation_level=None, timeout=10, check_same_thread=False)

    def release() -> None:
        other.execute("ROLLBACK")

    with closing(other), System([sleeper()], store=open_store(database, busy_timeout_ms=100)) as system:
        marks.append(system.mark)
        system.wait_for("sleeper", Status.HEALTHY, timeout_s=PATIENCE_S)
        other.execute("BEGIN IMMEDIATE")
        system.at_stop(release)
        kill(system)
        system.escalate_stop(Urgency.KILL)  # the stop does not wait for the store
        system.stop()
    assert not database.with_name(database.name + ".unsaved").exists()
    assert rows.restart_count("sleeper") == len(rows.deaths("sleeper")) == 1


def test_events_that_arrive_during_the_last_commits_of_a_stop_are_stored(
    rows: Rows, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stop looked at the records that waited, and lost events that waited alone."""
    store = open_store(database)
    system = System([], store=store)
    system.open()
    assert eventually(lambda: system.report().unsaved == 0)
    commit, to_come = store.commit, [GatewayLost("nats", f"gone {number}") for number in range(5)]

    def announce(records: Sequence[Record]) -> tuple[JobSettled, ...]:
        if to_come:
            system.announce(to_come.pop())
        return commit(records)

    monkeypatch.setattr(store, "commit", announce)
    system.stop()
    assert not to_come
    assert rows("SELECT count(*) FROM rekindle_event WHERE type = 'gateway_lost'") == [(5,)]


def test_what_a_commit_that_never_returns_held_up_is_kept_at_a_stop(
    run: Run, rows: Rows, database: Path, marks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stop got no answer to its flush, and all records were lost."""
    monkeypatch.setattr(lifecycle, "REPLY_TIMEOUT_S", 0.5)
    system = System([sleeper()], store=open_store(database, busy_timeout_ms=60_000))
    system.start()
    marks.append(system.mark)
    kill(system)
    assert eventually(lambda: len(rows.deaths("sleeper")) == 1)
    with locked(database):
        kill(system)
        system.stop()
        assert database.with_name(database.name + ".unsaved").exists()
    again = run(sleeper())
    assert again.status("sleeper").restart_count == rows.restart_count("sleeper") == 2
    assert [signum for _, _, _, signum, _ in rows.deaths("sleeper")] == [9, 9]
