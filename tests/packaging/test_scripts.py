"""The scripts, in a copy of the checkout whose programs only say how they were called."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

COMMANDS = {"python": '#!/bin/sh\n[ "$1" = -c ] || echo "$@"\n', "rekindle": '#!/bin/sh\necho "$PWD" "$@"\n'}


@pytest.fixture
def checkout(tmp_path: Path, source_tree: Path) -> Path:
    """A checkout whose environment is filled, as far as the scripts can see."""
    folder = tmp_path / "checkout"
    bin_ = folder / ".venv" / "bin"
    for new in (folder / "scripts", bin_):
        new.mkdir(parents=True)
    for name in (
        "pyproject.toml",
        "scripts/run",
        "scripts/build",
        "scripts/venv.sh",
        "scripts/constraints.txt",
    ):
        shutil.copy(source_tree / name, folder / name)
    for name, text in COMMANDS.items():
        (bin_ / name).write_text(text)
        (bin_ / name).chmod(0o755)
    fill = '. "$(dirname -- "$0")/venv.sh"; fingerprint >"$VENV/.rekindle-core"'
    subprocess.run(["sh", "-c", fill, str(folder / "scripts" / "run")], check=True)
    return folder


def called(checkout: Path, *arguments: str, cwd: Path) -> str:
    """How the command was called: from where, and with what."""
    script = str(checkout / "scripts" / "run")
    return subprocess.run([script, *arguments], cwd=cwd, check=True, capture_output=True, text=True).stdout


def test_a_file_is_meant_from_where_the_caller_is(checkout: Path, tmp_path: Path) -> None:
    assert called(checkout, "my.toml", cwd=tmp_path) == f"{tmp_path} run my.toml\n"


def test_a_file_is_found_behind_the_options(checkout: Path, tmp_path: Path) -> None:
    assert called(checkout, "--log-json", "my.toml", cwd=tmp_path) == f"{tmp_path} run --log-json my.toml\n"


def test_without_a_file_it_is_the_demo(checkout: Path) -> None:
    assert called(checkout, "--for", "20", cwd=checkout) == f"{checkout} demo --for 20\n"


def test_a_build_installs_the_build_tools_and_not_the_development_set(checkout: Path) -> None:
    build = [str(checkout / "scripts" / "build")]
    done = subprocess.run(build, check=True, capture_output=True, text=True)
    installed = [line for line in done.stdout.splitlines() if "pip install" in line]
    assert installed == ["-m pip install --quiet build hatchling --constraint scripts/constraints.txt"]
    assert done.stdout.splitlines()[-1] == "-m build --no-isolation --outdir dist ."
