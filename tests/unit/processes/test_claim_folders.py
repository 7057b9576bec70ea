"""The folders that killed supervisors leave behind are removed by the next one; no other folder is."""

from __future__ import annotations

import os
import socket
import tempfile
from pathlib import Path

import pytest

from rekindle.actors.processes.claims.claim_folders import SOCKET_NAME, new_folder

LONG_AGO = 1_000_000_000


def left(where: Path, name: str, *, age: bool = True) -> socket.socket:
    """A folder with a socket that listens until it is closed."""
    folder = where / f"rekindle-{name}"
    folder.mkdir()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / SOCKET_NAME))
    listener.listen()
    if age:
        os.utime(folder, (LONG_AGO, LONG_AGO))
    return listener


def test_only_the_folder_of_a_supervisor_that_ended_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as name:
        where = Path(name)
        monkeypatch.setattr(tempfile, "tempdir", name)
        left(where, "ended").close()
        left(where, "young", age=False).close()
        left(where, "with-a-file").close()
        (where / "rekindle-with-a-file" / "data").touch()
        os.utime(where / "rekindle-with-a-file", (LONG_AGO, LONG_AGO))
        (where / "rekindle-link").symlink_to(where / "rekindle-young")
        with left(where, "running"):
            made = Path(new_folder())
        kept = {"rekindle-young", "rekindle-with-a-file", "rekindle-link", "rekindle-running"}
        assert {each.name for each in where.iterdir()} == {*kept, made.name}
