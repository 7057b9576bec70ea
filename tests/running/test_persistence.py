"""The state that a killed supervisor leaves to the next one."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from tests.processes.waiting import PATIENCE_S, Held, ended, eventually
from tests.running.conftest import Run, Running
from tests.services import PostgresService

KILLS = int(os.environ.get("REKINDLE_KILLS", "5"))

FLAKY = """
[worker.flaky]
command = ["sleep", "1000"]
restart = { initial_delay_s = 0.05, min_delay_s = 0, max_delay_s = 60, multiplier = 1, max_in_window = 3 }
[worker.calm]
command = ["sleep", "1000"]
"""


def kill_worker(running: Running, name: str) -> None:
    """Kill a worker, and see that it was noticed."""
    before = running.wait_for(name, status="healthy")
    os.kill(before["pid"], signal.SIGKILL)
    assert eventually(lambda: running.worker(name).get("pid") != before["pid"])


def test_f10_all_workers_are_gone_after_the_supervisor_was_killed_and_the_next_one_remembers(
    run: Run,
) -> None:
    running = run(FLAKY)
    calm = running.wait_for("worker:calm:0", status="healthy")["pid"]
    for _ in range(2):
        kill_worker(running, "worker:flaky:0")
    flaky = running.wait_for("worker:flaky:0", status="healthy")["pid"]
    with Held([calm, flaky]) as held:
        running.kill()
        assert held.all_end(PATIENCE_S)
    again = run(FLAKY)
    remembered = again.wait_for("worker:flaky:0", status="healthy")
    assert remembered["restart_count"] == 2
    assert remembered["generation"] > 3, "a generation is used once"


def test_a_failed_worker_stays_failed_across_a_kill_of_the_supervisor(run: Run) -> None:
    running = run(FLAKY)
    for _ in range(4):
        if running.worker("worker:flaky:0").get("shown") != "failed":
            kill_worker(running, "worker:flaky:0")
    running.wait_for("worker:flaky:0", shown="failed")
    assert eventually(lambda: running.client.get("/workers")["unsaved"] == 0)
    assert eventually(
        lambda: rows(running, "SELECT failed_at_wall_ms FROM rekindle_worker_restart_policy")[0][0]
    )
    running.kill()
    again = run(FLAKY)
    again.wait_for("worker:calm:0", status="healthy")
    failed = again.worker("worker:flaky:0")
    assert (failed["shown"], failed["pid"]) == ("failed", None)
    again.order("workers", "worker:flaky:0", "restart")
    assert again.wait_for("worker:flaky:0", status="healthy")["restart_count"] == 0


def test_a_pause_outlasts_a_kill_of_the_supervisor_and_ends_by_itself(run: Run) -> None:
    running = run(FLAKY)
    running.wait_for("worker:calm:0", status="healthy")
    running.order("pause", reason="new disk", for_s=3600)
    running.wait_for("worker:calm:0", shown="stopped")
    assert eventually(lambda: rows(running, "SELECT 1 FROM rekindle_meta WHERE key = 'pause_until_wall_ms'"))
    running.kill()
    again = run(FLAKY)
    paused = again.wait_for("worker:calm:0", paused=True)
    assert (paused["pause_reason"], paused["pid"]) == ("new disk", None)
    assert 0 < paused["pause_ends_in_ms"] <= 3_600_000
    again.order("resume")
    again.wait_for("worker:calm:0", status="healthy")


def test_a_delay_that_was_not_over_is_waited_for_by_the_next_supervisor(run: Run) -> None:
    slow = (
        '[worker.slow]\ncommand = ["sleep", "1000"]\nrestart = { initial_delay_s = 40, max_delay_s = 60 }\n'
    )
    running = run(slow)
    kill_worker(running, "worker:slow:0")
    running.wait_for("worker:slow:0", shown="crashed")
    assert eventually(lambda: rows(running, "SELECT 1 FROM rekindle_death"))
    running.kill()
    again = run(slow)
    waiting = again.wait_for("worker:slow:0", shown="crashed")
    assert 0 < waiting["next_attempt_in_ms"] <= 40_000
    assert waiting["pid"] is None


def test_f22_the_database_is_right_however_often_the_supervisor_is_killed(run: Run) -> None:
    crashing = "\n".join(
        f'[worker.crash{n}]\ncommand = ["false"]\n'
        "restart = { initial_delay_s = 0.005, max_delay_s = 0.02, min_delay_s = 0, multiplier = 1, "
        "max_in_window = 1000000, max_lifetime = 1000000 }"
        for n in range(3)
    )
    moments = random.Random(22)
    for _ in range(KILLS):
        running = run(crashing)
        assert eventually(lambda: rows(running, "SELECT 1 FROM rekindle_death"))  # noqa: B023
        with suppress(subprocess.TimeoutExpired):
            running.process.wait(moments.uniform(0.0, 0.3))
        running.kill()
        assert rows(running, "PRAGMA quick_check") == [("ok",)]
        counted = "SELECT component_id, count(*) FROM rekindle_death WHERE action = 'restart' GROUP BY 1"
        kept = "SELECT component_id, restart_count FROM rekindle_worker_restart_policy"
        assert sorted(rows(running, counted)) == sorted(rows(running, kept))


def test_f24_workers_outlast_a_restart_of_postgresql(
    run: Run, postgres_service: PostgresService, postgres_url: str
) -> None:
    running = run(f'database = "{postgres_url}"\n{FLAKY}')
    calm = running.wait_for("worker:calm:0", status="healthy")["pid"]
    postgres_service.stop()
    kill_worker(running, "worker:flaky:0")
    assert running.wait_for("worker:flaky:0", status="healthy")["restart_count"] == 1
    assert eventually(lambda: running.client.get("/info")["degraded"])
    postgres_service.start()
    assert eventually(lambda: running.client.get("/info")["degraded"] is None, 60)
    assert not ended(calm)
    history = running.client.get("/workers/worker:flaky:0/history")["deaths"]
    assert [death["signal"] for death in history] == [9]


def rows(running: Running, statement: str) -> list[tuple[object, ...]]:
    """What a query finds in the database of a supervisor, running or not."""
    database: Path = running.file.parent / ".rekindle" / "rekindle.db"
    if not database.exists():
        return []
    with closing(sqlite3.connect(database, timeout=10)) as connection:
        try:
            return connection.execute(statement).fetchall()
        except sqlite3.OperationalError:
            return []


@contextmanager
def locked(running: Running) -> Iterator[None]:
    """While the database is locked, a worker was killed, and the supervisor is stopping."""
    running.wait_for("worker:flaky:0", status="healthy")
    database = running.file.parent / ".rekindle" / "rekindle.db"
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        kill_worker(running, "worker:flaky:0")
        running.signal(signal.SIGTERM)
        assert eventually(lambda: "records are not written yet" in running.text()), running.text()
        yield


def stored_deaths(running: Running) -> int:
    """How many deaths of the worker that was killed are stored."""
    database = running.file.parent / ".rekindle" / "rekindle.db"
    with closing(sqlite3.connect(database)) as connection:
        (found,) = connection.execute("SELECT count(*) FROM rekindle_death WHERE signal = 9").fetchone()
        return int(found)


def test_f19_a_stop_waits_for_a_locked_database_and_loses_no_death(run: Run) -> None:
    """It ended with 0 after 0.7 s, and ten records were lost."""
    running = run(FLAKY)
    with locked(running):
        pass
    assert running.end() == 0
    assert stored_deaths(running) == 1


def test_f19_a_stop_that_keeps_records_aside_says_so_by_its_exit_code(run: Run) -> None:
    running = run(FLAKY)
    with locked(running):
        running.signal(signal.SIGTERM)  # a second one: the stop waits no longer
        assert running.end() == 1
    assert "could not be written; they are kept in" in running.text()


def test_f19_a_death_that_is_stored_after_another_run_has_used_the_store_has_its_event(run: Run) -> None:
    """The death was in the history, and no event told it.

    That of a process whose start was stored was told as one that ended with its supervisor, not counted.
    """
    first = run(FLAKY)
    first.wait_for("worker:calm:0", status="healthy")
    database = first.file.parent / ".rekindle" / "rekindle.db"
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        kill_worker(first, "worker:flaky:0")
        kill_worker(first, "worker:flaky:0")  # neither the start nor the death of this process is stored
        first.signal(signal.SIGTERM)
        assert eventually(lambda: "records are not written yet" in first.text()), first.text()
        first.signal(signal.SIGTERM)  # the stop waits no longer
        assert first.end() == 1
        second = run(FLAKY)
        refused = "records of the former run are kept for the next start"
        assert eventually(lambda: refused in second.text(), 2 * PATIENCE_S), second.text()
    kill_worker(second, "worker:flaky:0")
    assert eventually(lambda: second.client.get("/workers")["unsaved"] == 0)
    assert second.stop() == 0
    third = run(FLAKY)
    third.wait_for("worker:flaky:0", status="healthy")
    deaths = third.client.get("/workers/worker:flaky:0/history")["deaths"]
    causes = {each["generation"]: each["cause"] for each in deaths}
    assert (causes[1], causes[2], set(causes.values())) == ("signalled", "signalled", {"signalled"})
    events = third.client.get("/events/log?after=0&limit=1000")["events"]
    died = [each for each in events if each["type"] == "worker_died"]
    told = [each["generation"] for each in died if each["component_id"] == "worker:flaky:0"]
    assert sorted(told) == sorted(each["generation"] for each in deaths)
    assert [each["id"] for each in events] == list(range(1, len(events) + 1))


def test_f19_the_next_run_waits_for_a_database_that_is_locked_before_it_uses_it(run: Run) -> None:
    """It went on without what the former run had kept for it, although it waited for the database anyway."""
    first = run(FLAKY)
    with locked(first):
        first.signal(signal.SIGTERM)
        assert first.end() == 1
        second = run(FLAKY)
        assert eventually(lambda: second.text().count("supervisor: starting") == 2)
        assert not eventually(lambda: second.text().count("descriptors for") == 2, 7.0), second.text()
    flaky = second.wait_for("worker:flaky:0", status="healthy")
    assert flaky["restart_count"] == 1
    assert "records that the former run could not write are stored now" in second.text()
