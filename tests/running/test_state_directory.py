"""A state directory that somebody else could tamper with, or whose database is of no use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.running.conftest import Run

SLEEPER = '[worker.sleep]\ncommand = ["sleep", "1000"]\n'


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """The state directory, before the first run."""
    path = tmp_path / ".rekindle"
    path.mkdir(mode=0o700)
    return path


def test_nothing_is_written_into_a_directory_that_others_can_write(run: Run, state: Path) -> None:
    state.chmod(0o777)
    running = run(SLEEPER)
    assert running.end() == 1
    assert f"{state} can be written by others" in running.text()
    assert list(state.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_nothing_is_written_into_a_directory_of_another_user(run: Run, state: Path) -> None:
    os.chown(state, 65534, 65534)
    running = run(SLEEPER)
    assert running.end() == 1
    assert f"{state} belongs to another user" in running.text()
    assert list(state.iterdir()) == []


@pytest.mark.parametrize("name", ["rekindle.db", "rekindle.db-wal"])
def test_a_database_that_is_a_link_is_not_followed(run: Run, state: Path, tmp_path: Path, name: str) -> None:
    (state / name).symlink_to(tmp_path / "precious")
    running = run(SLEEPER)
    assert running.end() == 1
    assert f"{state / name} is a symbolic link" in running.text()
    assert not (tmp_path / "precious").exists()
