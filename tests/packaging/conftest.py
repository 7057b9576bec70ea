"""The wheel, built once and installed where nothing of this checkout is importable."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.hookimpl(tryfirst=True)  # xdist reads the marks in this very hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep this folder's tests in one process under xdist, so that the wheel is built once."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("wheel"))


@pytest.fixture(scope="session")
def source_tree() -> Path:
    """Return the folder that everything is built from."""
    return ROOT


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the sdist, and with the wheel that was built from that sdist."""
    folder = tmp_path_factory.mktemp("dist")
    _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT))
    return folder


@pytest.fixture(scope="session")
def wheel(built: Path) -> Path:
    """Return the built wheel."""
    (path,) = built.glob("*.whl")
    return path


@pytest.fixture(scope="session")
def installed_wheel(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of a new environment with the wheel in it.

    The dependencies are borrowed from the environment that runs the tests, so that no network is
    needed: a path file names its packages, and path files over there (the editable install of this
    checkout) have no effect from here.
    """
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True, with_pip=False)
    python = folder / "bin" / "python"
    install = ("install", "--quiet", "--no-deps", "--no-index", str(wheel))
    _run(sys.executable, "-m", "pip", "--python", str(python), *install)
    site_packages = sysconfig.get_path("purelib", "venv", {"base": str(folder), "platbase": str(folder)})
    Path(site_packages, "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def _run(*command: str) -> None:
    """Run a command to its end, in an environment that says nothing about where to import from."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
