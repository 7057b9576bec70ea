"""Which code a worker runs, by the files that its command names."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from rekindle.actors import Command, WorkerSpec
from rekindle.actors.processes.fingerprints import Fingerprints
from rekindle.actors.processes.spawn import settlement


def test_the_files_of_a_worker_with_a_user_are_those_in_its_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file of the same name in the folder of the supervisor counted, which such a worker never runs."""
    home, here = tmp_path / "home", tmp_path / "here"
    for folder in (home, here):
        folder.mkdir()
        (folder / "app.sh").write_text("sleep 1")
    monkeypatch.chdir(here)
    own = pwd.getpwuid(os.geteuid())
    user = pwd.struct_passwd((*own[:5], str(home), own.pw_shell))
    monkeypatch.setattr(settlement, "known_user", lambda _: user)
    fingerprints = Fingerprints()
    spec = WorkerSpec("worker:app:0", Command(("sh", "app.sh")), user=own.pw_name)
    before = fingerprints.of(spec).code
    (here / "app.sh").write_text("sleep 22")
    assert fingerprints.of(spec).code == before
    (home / "app.sh").write_text("sleep 333")
    assert fingerprints.of(spec).code != before
