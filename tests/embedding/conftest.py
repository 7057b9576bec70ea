"""A host project beside the installed wheel, in an interpreter that knows nothing of this checkout."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.packaging.conftest import built, installed_wheel, wheel
from tests.processes.waiting import eventually

from rekindle.worker.guardian import marked_processes, sweep

__all__ = ["built", "installed_wheel", "wheel"]

HERE = Path(__file__).parent

Host = Callable[..., dict[str, Any]]


@pytest.fixture
def host(installed_wheel: Path, tmp_path: Path) -> Host:
    """Runs a program of `hosts/` as a host application would be; what it printed, as JSON.

    The program must exit with 0, write nothing to stderr, and leave no process behind
    for more than a moment.
    """
    (tmp_path / "actors").mkdir()
    (tmp_path / "actors" / "__init__.py").write_text((HERE / "hosts" / "host_actors.py").read_text())
    (tmp_path / "works.py").write_text((HERE / "hosts" / "works.py").read_text())

    def run(program: str, *arguments: str, exit_code: int = 0, silent: bool = True) -> dict[str, Any]:
        (tmp_path / "main.py").write_text((HERE / "hosts" / f"{program}.py").read_text())
        environment = {"PATH": os.environ["PATH"], "SECRET": "of the host"}
        done = subprocess.run(
            [installed_wheel, "main.py", *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == exit_code, done.stderr
        if silent:
            assert done.stderr == ""
        said: dict[str, Any] = json.loads(done.stdout)
        for mark in said["marks"]:
            gone = eventually(lambda mark=mark: marked_processes(mark) == [], within_s=10.0)  # type: ignore[misc]
            sweep(mark, within_s=5.0)
            assert gone
        return said

    return run
