"""The wheel, built once and installed where nothing of this checkout is importable."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import pytest

OLDER = "0.0.9"
"""The number of the version that stands in for a released one."""

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def source_tree() -> Path:
    """Return the folder that everything is built from."""
    return ROOT


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the sdist, and with the wheel that was built from that sdist."""
    return _once(tmp_path_factory, "dist", _build)


@pytest.fixture(scope="session")
def wheel(built: Path) -> Path:
    """Return the built wheel."""
    (path,) = built.glob("*.whl")
    return path


@pytest.fixture(scope="session")
def installed_wheel(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of a new environment with the wheel in it."""
    folder = _once(tmp_path_factory, "environment", lambda folder: _install(wheel, folder))
    return folder / "bin" / "python"


@pytest.fixture(scope="session")
def installed_release(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of an environment with the version that was released last.

    `REKINDLE_RELEASED_WHEEL` names its wheel. Without it, the built wheel with an older number stands in.
    """
    named = os.environ.get("REKINDLE_RELEASED_WHEEL")

    def install(folder: Path) -> None:
        folder.mkdir()
        _install(Path(named) if named else _numbered(wheel, OLDER, folder), folder / "environment")

    return _once(tmp_path_factory, "release", install) / "environment" / "bin" / "python"


def _numbered(wheel: Path, number: str, folder: Path) -> Path:
    """Copy a wheel, with another version number; returns the copy."""
    name, version, *tags = wheel.name.split("-")
    copy = folder / "-".join((name, number, *tags))
    old, new = f"{name}-{version}.dist-info/", f"{name}-{number}.dist-info/"
    with ZipFile(wheel) as source, ZipFile(copy, "w") as target:
        for each in source.namelist():
            content = source.read(each)
            if each in ("rekindle/__init__.py", f"{old}METADATA", f"{old}RECORD"):
                content = content.replace(version.encode(), number.encode())
            target.writestr(each.replace(old, new), content)
    return copy


def _build(folder: Path) -> None:
    _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT))


def _install(wheel: Path, folder: Path) -> None:
    """Make an environment with the wheel, and with the dependencies of the one that runs the tests.

    They are borrowed, so that no network is needed: a path file names the packages over there, and
    path files over there (the editable install of this checkout) have no effect from here.
    """
    venv.create(folder, symlinks=True, with_pip=False)
    target = ("--python", str(folder / "bin" / "python"))
    _run(sys.executable, "-m", "pip", *target, "install", "--quiet", "--no-deps", "--no-index", str(wheel))
    site_packages = sysconfig.get_path("purelib", "venv", {"base": str(folder), "platbase": str(folder)})
    Path(site_packages, "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")


def _once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """Return the folder that was made once for this run, also when several xdist processes ask for it.

    A lock, and no `xdist_group`: with pytest 9.2, xdist 3.8 ignores groups without a word.
    """
    shared = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder, done = shared / name, shared / f"{name}.done"
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            make(folder)
            done.touch()
    return folder


def _run(*command: str) -> None:
    """Run a command to its end, in an environment that says nothing about where to import from."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
