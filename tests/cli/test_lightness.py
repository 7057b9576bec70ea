"""The commands are quick because they load little."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cli.conftest import Client

HEAVY = (
    "alembic",
    "loguru",
    "msgspec",
    "psutil",
    "pykka",
    "rekindle.actors",
    "sqlalchemy",
    "starlette",
    "uvicorn",
)
ARGUMENTS = [
    ("--help",),
    ("simulate", "--help"),
    ("status", "--help"),
    ("status",),
    ("stop", "worker:web:0"),
    ("completion", "fish"),
]


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=" ".join)
def test_a_command_loads_neither_actors_nor_databases(nobody: Client, arguments: tuple[str, ...]) -> None:
    code = (
        "import sys\nfrom rekindle.cli.main import main\n"
        f"try: main({list(arguments)})\n"
        f"except SystemExit: pass\nsys.stderr.write(repr([name for name in {HEAVY} if name in sys.modules]))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=nobody.variables, capture_output=True, text=True, timeout=60)
    assert done.stderr.splitlines()[-1] == "[]"


def test_a_whole_status_takes_less_than_a_quarter_of_a_second(many: Client, tmp_path: Path) -> None:
    """The best of several: what others do on this machine says nothing about us."""
    cached = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(tmp_path)}
    client = Client(many.state, cached)
    assert client("status").code == 0

    def timed() -> float:
        began = time.perf_counter()
        assert client("status").code == 0
        return time.perf_counter() - began

    assert min(timed() for _ in range(8)) < 0.25
