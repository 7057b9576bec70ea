"""A state directory that another user can write to, or whose database is damaged."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.running.conftest import Run

SLEEPER = '[worker.sleep]\ncommand = ["sleep", "1000"]\n'
GARBAGE = b"no database at all\n" * 1000


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """The state directory, before the first run."""
    path = tmp_path / ".rekindle"
    path.mkdir(mode=0o700)
    return path


def test_nothing_is_written_into_a_directory_that_others_can_write(run: Run, state: Path) -> None:
    state.chmod(0o777)
    running = run(SLEEPER)
    assert running.end() == 2
    assert f"{state} is writable by other users" in running.text()
    assert list(state.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_nothing_is_written_into_a_directory_of_another_user(run: Run, state: Path) -> None:
    os.chown(state, 65534, 65534)
    running = run(SLEEPER)
    assert running.end() == 2
    assert f"{state} belongs to another user" in running.text()
    assert list(state.iterdir()) == []


@pytest.mark.parametrize("name", ["rekindle.db", "rekindle.db-wal"])
def test_a_database_that_is_a_link_is_not_followed(run: Run, state: Path, tmp_path: Path, name: str) -> None:
    (state / name).symlink_to(tmp_path / "precious")
    running = run(SLEEPER)
    assert running.end() == 1
    assert f"{state / name} is a symbolic link" in running.text()
    assert not (tmp_path / "precious").exists()


def test_f21_a_damaged_database_is_reported_in_one_sentence_and_left_as_it_is(run: Run, state: Path) -> None:
    (state / "rekindle.db").write_bytes(GARBAGE)
    running = run(SLEEPER)
    assert running.end() == 1
    starting, error = running.text().splitlines()
    assert "supervisor: starting" in starting
    assert f"{state / 'rekindle.db'} is damaged" in error
    assert running.text().endswith("persisting nothing: rekindle run FILE --ignore-state\n")
    assert (state / "rekindle.db").read_bytes() == GARBAGE


def test_f21_the_workers_run_beside_a_damaged_database_if_the_operator_asks_for_it(
    run: Run, state: Path
) -> None:
    (state / "rekindle.db").write_bytes(GARBAGE)
    running = run(SLEEPER, "--ignore-state")
    running.wait_for("worker:sleep:0", status="healthy")
    assert "WARNING store: running without the database" in running.text()
    assert running.stop() == 0
    assert (state / "rekindle.db").read_bytes() == GARBAGE


def test_the_first_start_takes_no_more_memory_than_the_next(run: Run, state: Path) -> None:
    """What makes the tables (12 MB) is loaded by a process that ends, not by the supervisor."""
    taken = []
    for _ in ("without a database", "with one"):
        running = run(SLEEPER)
        running.wait_for("worker:sleep:0", status="healthy")
        rollup = Path(f"/proc/{running.process.pid}/smaps_rollup").read_text().split()
        taken.append(int(rollup[rollup.index("Pss_Anon:") + 1]) / 1024)
        assert running.stop() == 0
    first, second = taken
    assert first < second + 5, f"{first:.1f} MB, then {second:.1f}"
