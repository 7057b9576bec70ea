"""What the README shows works as it is shown."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    program = folder / "app.py"
    program.write_text(code)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "scripts" / "import_root")}
    return subprocess.run(
        [sys.executable, program.name],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )


def test_the_first_program_of_the_readme_brings_its_worker_back(tmp_path: Path) -> None:
    shown = run(BLOCKS[0], tmp_path).stdout
    assert re.fullmatch(r"killed \d+, back as \d+: Restart #1 with 1s backoff\n", shown)


@pytest.mark.parametrize("code", BLOCKS[1:], ids=lambda code: code.strip().splitlines()[-1][:40])
def test_every_other_program_of_the_readme_runs(code: str, tmp_path: Path) -> None:
    run(code, tmp_path)


def test_the_tests_of_the_readme_pass_beside_its_first_program(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(BLOCKS[0])
    tests = next(code for code in BLOCKS if code.startswith("# test_app.py"))
    (tmp_path / "test_app.py").write_text(tests)
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT / 'scripts' / 'import_root'}:{tmp_path}",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "rekindle.testing.plugin", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert "5 passed" in done.stdout, done.stdout
