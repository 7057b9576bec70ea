"""The commands are quick because they load little."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cli.conftest import Client

from rekindle.cli.commands.index import SECTIONS, module_of
from rekindle.cli.main import main

HEAVY = {
    "alembic",
    "asyncio",
    "dataclasses",
    "loguru",
    "msgspec",
    "psutil",
    "pykka",
    "rekindle.actors",
    "rekindle.persistence",
    "rich",
    "sqlalchemy",
    "starlette",
    "textual",
    "uvicorn",
}
COMMANDS = {
    f"rekindle.cli.commands.{module_of(title, name)}" for title, names in SECTIONS.items() for name in names
}
ARGUMENTS = [
    ("--help", None),
    ("--version", None),
    ("no-such-command", None),
    ("simulate --help", "setup.simulate"),
    ("status --help", "look.status"),
    ("status", "look.status"),
    ("jobs", "look.jobs"),
    ("explain worker:web:0", "investigate.explain"),
    ("stop worker:web:0", "act.stop"),
    ("completion fish", "setup.completion"),
]


@pytest.mark.parametrize(("arguments", "own"), ARGUMENTS, ids=[words for words, _ in ARGUMENTS])
def test_a_command_loads_itself_and_neither_actors_nor_databases(
    no_supervisor: Client, arguments: str, own: str | None
) -> None:
    code = (
        "import json, sys\nfrom rekindle.cli.main import main\n"
        f"try: main({arguments.split()})\n"
        "except SystemExit: pass\nsys.stderr.write('\\n' + json.dumps(sorted(sys.modules)))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=no_supervisor.variables, capture_output=True, text=True, timeout=60)
    loaded = set(json.loads(done.stderr.splitlines()[-1]))
    assert loaded & HEAVY == set()
    assert loaded & COMMANDS == ({f"rekindle.cli.commands.{own}"} if own else set())


def test_each_summary_is_the_first_sentence_of_the_commands_own_help() -> None:
    for summaries in SECTIONS.values():
        for name, summary in summaries.items():
            command = main.commands[name]
            assert command.name == name
            assert command.short_help is None
            assert summary == command.get_short_help_str(100)


def test_a_whole_status_takes_less_than_a_second(every_state: Client, tmp_path: Path) -> None:
    """The best of several: what others do on this machine says nothing about us."""
    cached = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(tmp_path)}
    client = Client(every_state.state, cached)
    assert client("status").code == 0

    def timed() -> float:
        began = time.perf_counter()
        assert client("status").code == 0
        return time.perf_counter() - began

    assert any(timed() < 1.0 for _ in range(30))
