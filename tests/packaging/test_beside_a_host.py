"""The installed wheel beside an application that has an `actors` package of its own."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

HOST = """
import importlib, json, sys

import actors

names = ["rekindle.actors", "rekindle.persistence", "rekindle.migrations", "rekindle.worker"]
print(json.dumps({
    "host": actors.OWNER,
    "paths": {name: list(importlib.import_module(name).__path__) for name in names},
    "host_again": importlib.import_module("actors").OWNER,
    "tops": sorted({"actors", "persistence", "migrations", "worker"} & set(sys.modules)),
}))
"""


@pytest.fixture
def host(tmp_path: Path) -> Path:
    package = tmp_path / "actors"
    package.mkdir()
    (package / "__init__.py").write_text('OWNER = "the host"\n')
    (tmp_path / "main.py").write_text(HOST)
    return tmp_path


def run(python: Path, *arguments: str, cwd: Path) -> str:
    done = subprocess.run(
        [python, *arguments], cwd=cwd, env={}, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_host_keeps_its_own_actors(installed_wheel: Path, host: Path) -> None:
    said = json.loads(run(installed_wheel, "main.py", cwd=host))
    assert (said["host"], said["host_again"], said["tops"]) == ("the host", "the host", ["actors"])


def test_every_package_comes_from_the_wheel_alone(installed_wheel: Path, host: Path) -> None:
    said = json.loads(run(installed_wheel, "main.py", cwd=host))
    environment = installed_wheel.parents[1]
    places = [Path(path) for paths in said["paths"].values() for path in paths]
    assert len(places) == 4
    assert all(place.is_relative_to(environment) for place in places)


def test_the_worker_side_loads_none_of_the_dependencies(installed_wheel: Path, tmp_path: Path) -> None:
    program = "import sys, rekindle.worker; print(*sys.modules)"
    loaded = set(run(installed_wheel, "-c", program, cwd=tmp_path).split())
    assert loaded.isdisjoint({"sqlalchemy", "alembic", "pykka", "loguru", "click", "msgspec", "psutil"})


def test_the_actors_load_no_database_library(installed_wheel: Path, tmp_path: Path) -> None:
    program = "import sys, rekindle.actors; print(*sys.modules)"
    loaded = set(run(installed_wheel, "-c", program, cwd=tmp_path).split())
    assert loaded.isdisjoint({"sqlalchemy", "alembic", "rekindle.persistence"})


def test_the_package_knows_its_version(installed_wheel: Path, tmp_path: Path) -> None:
    assert (
        run(installed_wheel, "-c", "import rekindle; print(rekindle.__version__)", cwd=tmp_path) == "0.1.0\n"
    )


def test_python_m_rekindle_is_the_command(installed_wheel: Path, tmp_path: Path) -> None:
    said = run(installed_wheel, "-m", "rekindle", "--version", cwd=tmp_path)
    assert said == "rekindle, version 0.1.0\n"


def test_pytest_finds_the_plugin_of_the_wheel(installed_wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("def work(worker):\n    worker.wait(100)\n")
    (tmp_path / "test_app.py").write_text(
        "from rekindle.actors import PythonCall, WorkerSpec\n\n"
        "def test_it(rekindle_system):\n"
        "    system = rekindle_system(WorkerSpec('worker:a:0', PythonCall('app:work')))\n"
        "    assert system.wait_until_healthy().pid\n"
    )
    said = run(installed_wheel, "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=tmp_path)
    assert "1 passed" in said
