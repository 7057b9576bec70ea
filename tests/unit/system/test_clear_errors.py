"""The errors of a `System` that is used wrongly say what is wrong."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from rekindle.actors import Command, RequestTimeoutError, Status, System, WorkerSpec
from rekindle.actors.processes.logs import log_folder
from rekindle.persistence import MemoryStore


def test_a_path_is_not_a_store() -> None:
    path: Any = "x.db"
    with pytest.raises(TypeError, match=r"such as open_store\('x.db'\)"):
        System([], store=path)


def test_a_wait_that_ends_without_a_reason_ends_with_the_status() -> None:
    with System([WorkerSpec("a", Command(("sleep", "1000")))], store=MemoryStore()) as system:
        system.wait_for("a", Status.HEALTHY, timeout_s=30)
        with pytest.raises(RequestTimeoutError, match=r"^a is healthy after 0 s$"):
            system.wait_for("a", Status.FAILED, timeout_s=0)


def test_a_folder_on_a_read_only_file_system_is_said_to_be_on_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert log_folder.denial(tmp_path) == "Permission denied"
    monkeypatch.setattr(os, "ST_RDONLY", -1)
    assert log_folder.denial(tmp_path) == "Read-only file system"
