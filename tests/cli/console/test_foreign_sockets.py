"""Root's client in a folder of another user."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from rekindle.cli.main import main

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs a second user")


@pytest.fixture
def foreign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of another user with a state directory, which is the current one."""
    state = tmp_path / ".rekindle"
    state.mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(state / "control.sock"))
    for path in (tmp_path, state, state / "control.sock"):
        os.chown(path, 65534, 65534)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SUDO_UID", raising=False)
    monkeypatch.delenv("REKINDLE_STATE", raising=False)
    return state


def test_a_socket_of_another_user_in_the_current_folder_is_not_used_by_root(foreign: Path) -> None:
    """It is any user's program that answers, in a folder that root only visits."""
    found = CliRunner().invoke(main, ["status"])
    assert found.exit_code == 1
    assert "belongs to another user (uid 65534)" in found.output


def test_root_uses_it_if_it_is_named(foreign: Path) -> None:
    found = CliRunner().invoke(main, ["status", "--state", str(foreign)])
    assert found.exit_code == 3
    assert "no supervisor" in found.output
