"""The supervisor is killed: no worker outlives it, and its records are reliable."""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import sqlite3
import threading
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from tests.processes.conftest import Rows, Run
from tests.processes.policies import sleeper
from tests.processes.supervisor import PROCESSES_OF_MIXED
from tests.processes.supervisors import Supervisor, children_of, command_of, guardian_of
from tests.processes.waiting import PATIENCE_S, Held, ended, eventually

from rekindle.actors import Status, StoreOwnedError, System
from rekindle.actors.processes import guardian_link
from rekindle.persistence import open_store
from rekindle.worker.guardian import marked_processes

KILLS = int(os.environ.get("REKINDLE_KILLS", "12"))
DIED = "worker_died"
PROMISE_S = 1.0
GENEROUS_S = 10 * PROMISE_S


def all_are_up(supervisor: Supervisor) -> bool:
    """Whether every process of the setup `mixed` is there, and is what it is to become."""
    family = supervisor.family()
    return len(family) == PROCESSES_OF_MIXED and not any(b"bash" in command_of(pid) for pid in family)


def test_f10_all_workers_are_gone_soon_after_the_supervisor_was_killed(
    database: Path, marks: list[str], no_traces: None
) -> None:
    with Supervisor("mixed", database) as supervisor:
        marks.append(supervisor.mark)
        assert eventually(lambda: all_are_up(supervisor))
        with Held(supervisor.family()) as held:
            supervisor.kill()
            assert held.all_end(GENEROUS_S), held.living()
        assert marked_processes(supervisor.mark) == []


def test_f10_a_guardian_that_was_killed_is_renewed_and_does_its_work(
    database: Path, marks: list[str], no_traces: None
) -> None:
    with Supervisor("mixed", database) as supervisor:
        marks.append(supervisor.mark)
        assert eventually(lambda: all_are_up(supervisor))
        assert eventually(supervisor.guardian)
        first = supervisor.guardian()
        assert first is not None
        os.kill(first, signal.SIGKILL)
        assert eventually(lambda: supervisor.guardian() not in (None, first))
        assert all_are_up(supervisor)
        with Held(supervisor.family()) as held:
            supervisor.kill()
            assert held.all_end(GENEROUS_S), held.living()


def is_renewed(former: int) -> bool:
    return guardian_of(os.getpid()) not in (None, former)


def test_a_guardian_that_cannot_be_watched_is_replaced_by_one_that_can(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a free descriptor it ran unwatched: once it was killed, nothing replaced it."""
    monkeypatch.setattr(guardian_link, "REST_S", 0.2)
    opened, refusals = os.pidfd_open, [OSError(errno.EMFILE, "Too many open files")]

    def pidfd_open(pid: int) -> int:
        if refusals and threading.current_thread().name == "rekindle-watcher":
            raise refusals.pop()
        return opened(pid)

    monkeypatch.setattr(os, "pidfd_open", pidfd_open)
    run(sleeper())
    assert eventually(lambda: not refusals)
    for _ in range(2):  # the first kill may meet the one that is on its way out
        assert eventually(lambda: guardian_of(os.getpid()) is not None)
        killed = guardian_of(os.getpid())
        assert killed is not None
        os.kill(killed, signal.SIGKILL)
        assert eventually(partial(is_renewed, killed))


def test_a_guardian_that_is_killed_again_and_again_is_started_after_a_rest(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was given up for good after five ends in the life of a supervisor."""
    monkeypatch.setattr(guardian_link, "MOST_RESTARTS", 1)
    monkeypatch.setattr(guardian_link, "REST_S", 1.0)
    run(sleeper())
    for _ in range(4):
        assert eventually(lambda: guardian_of(os.getpid()) is not None)
        killed = guardian_of(os.getpid())
        assert killed is not None
        os.kill(killed, signal.SIGKILL)
        assert eventually(partial(is_renewed, killed))


def test_f10_a_fork_of_the_host_that_has_every_descriptor_keeps_no_worker_alive(
    database: Path, marks: list[str], no_traces: None
) -> None:
    """A pool of multiprocessing held the guardian's line open, and it never saw the end."""
    with Supervisor("mixed", database, "fork") as supervisor:
        marks.append(supervisor.mark)
        assert eventually(lambda: all_are_up(supervisor))
        forked = forks_of(supervisor)
        assert len(forked) == 1
        with Held(supervisor.family()) as held:
            supervisor.kill()
            assert held.all_end(GENEROUS_S), held.living()
        os.kill(forked[0], signal.SIGKILL)


def forks_of(supervisor: Supervisor) -> list[int]:
    """Children of the supervisor that are copies of it."""
    own = command_of(supervisor.process.pid)
    return [pid for pid in children_of(supervisor.process.pid) if command_of(pid) == own]


def test_f10_a_supervisor_that_stops_by_itself_leaves_no_guardian(
    database: Path, marks: list[str], no_traces: None
) -> None:
    with Supervisor("sleeper", database) as supervisor:
        marks.append(supervisor.mark)
        assert eventually(supervisor.guardian)
        guardian = supervisor.guardian()
        assert guardian is not None
        # Every user can read it, and could start processes that seem to be ours.
        assert supervisor.mark.encode() not in command_of(guardian)
        assert supervisor.stop() == 0
        assert ended(guardian)


def test_f10_the_next_start_finds_the_counters(run: Run, rows: Rows, database: Path) -> None:
    with Supervisor("sleeper", database) as supervisor:
        assert eventually(lambda: len(supervisor.family()) == 1)
        os.kill(supervisor.family()[0], signal.SIGKILL)
        assert eventually(lambda: rows.restart_count("sleeper") == 1)
        supervisor.kill()
    assert run(sleeper()).status("sleeper").restart_count == 1


def test_f12_a_second_supervisor_in_another_process_is_refused(run: Run, database: Path) -> None:
    system = run(sleeper())
    system.wait_for("sleeper", Status.HEALTHY, timeout_s=PATIENCE_S)
    with Supervisor("sleeper", database) as second:
        said = second.said()
        assert said.startswith("StoreOwnedError")
        assert f"pid {os.getpid()}" in said
        assert second.stop() == 2
    assert eventually(lambda: len(marked_processes(system.mark)) == 1)


def test_f12_a_second_system_in_the_same_process_is_refused(run: Run, database: Path) -> None:
    system = run(sleeper())
    system.wait_for("sleeper", Status.HEALTHY, timeout_s=PATIENCE_S)
    with pytest.raises(StoreOwnedError, match=f"pid {os.getpid()}"):
        System([sleeper()], store=open_store(database))
    assert eventually(lambda: len(marked_processes(system.mark)) == 1)


def test_f22_a_supervisor_killed_at_any_instant_leaves_a_sound_database(
    database: Path, marks: list[str], no_traces: None
) -> None:
    chance = random.Random(22)
    for number in range(KILLS):
        with Supervisor("crashing", database) as supervisor:
            marks.append(supervisor.mark)
            eventually(lambda: False, within_s=chance.uniform(0.0, 0.3))
            supervisor.kill()
        assert eventually(lambda: marked_processes(marks[-1]) == [], GENEROUS_S)
        with closing(sqlite3.connect(database)) as connection:
            assert connection.execute("PRAGMA quick_check").fetchall() == [("ok",)]
            counts = connection.execute(
                "SELECT policy.component_id, policy.restart_count, count(death.id)"
                " FROM rekindle_worker_restart_policy AS policy LEFT JOIN rekindle_death AS death"
                " ON death.component_id = policy.component_id AND death.action = 'restart'"
                " GROUP BY policy.component_id"
            ).fetchall()
            events = connection.execute(
                "SELECT id, type, component_id, payload FROM rekindle_event ORDER BY id"
            ).fetchall()
            deaths_kept = connection.execute("SELECT component_id, generation FROM rekindle_death").fetchall()
        assert all(count == deaths for _, count, deaths in counts), (number, counts)
        assert [id_ for id_, *_ in events] == list(range(1, len(events) + 1))
        told = [(who, json.loads(text)["generation"]) for _, type_, who, text in events if type_ == DIED]
        assert sorted(told) == sorted(deaths_kept)
    assert sum(count for _, count, _ in counts) > KILLS
