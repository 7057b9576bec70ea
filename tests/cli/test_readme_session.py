"""The session in the README of the queues can be repeated with the program and the file beside it."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from tests.cli.conftest import client_of
from tests.processes.waiting import eventually
from tests.running.conftest import IMPORT_PATH, Run
from tests.test_readme import ROOT, blocks

PAGE = ROOT / "worker" / "jobs" / "README.md"


def test_the_job_that_kills_its_workers_becomes_toxic_as_shown(run: Run, tmp_path: Path) -> None:
    program = next(code for code in blocks(PAGE, "python") if "evil.mp3" in code)
    (tmp_path / "app.py").write_text(program)
    file = next(text for text in blocks(PAGE, "toml") if text.startswith("# workers.toml"))
    running = run(file, PYTHONPATH=f"{tmp_path}{os.pathsep}{IMPORT_PATH}")
    session = next(text for text in blocks(PAGE, "console") if "evil.mp3" in text)
    started, *lines = [shlex.split(line.removeprefix("$ "), comments=True) for line in session.splitlines()]
    assert started == ["rekindle", "run", "workers.toml", "&"]
    rekindle = client_of(running)
    by_command = {" ".join(words[1:3]): words[1:] for words in lines}
    for command in ("wait tag", "jobs enqueue"):
        assert rekindle(*by_command[command]).code == 0
    assert eventually(lambda: "evil.mp3" in rekindle(*by_command["jobs toxic"]).out)
    assert "SIGABRT" in rekindle(*by_command["jobs show"]).out
    assert rekindle(*by_command["jobs retry"]).code == 0
