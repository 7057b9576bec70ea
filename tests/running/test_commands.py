"""`rekindle run -- COMMAND`: one worker without a file."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.processes.waiting import PATIENCE_S, eventually
from tests.running.conftest import IMPORT_PATH, REKINDLE

from rekindle.actors.spec.presets import PRESETS
from rekindle.cli.client import ControlClient, ControlError, path_of
from rekindle.cli.commands.run.command_line import config_of, name_of


class Command:
    """One `rekindle run` of a command line."""

    def __init__(self, folder: Path, *words: str, **environment: str) -> None:
        variables = {**os.environ, "PYTHONPATH": IMPORT_PATH, **environment}
        self.process = subprocess.Popen(
            [*REKINDLE, "run", *words], cwd=folder, env=variables, stderr=subprocess.PIPE, text=True
        )
        self.client = ControlClient(folder / ".rekindle" / "control.sock")

    def worker(self, id_: str) -> Any:
        """One worker; empty while the supervisor does not answer."""
        try:
            return self.client.get(path_of("workers", id_))
        except ControlError:
            return {}

    def stop(self) -> int:
        """Stop it as Ctrl-C would; the exit code."""
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode


@contextmanager
def running(folder: Path, *words: str, **environment: str) -> Iterator[Command]:
    command = Command(folder, *words, **environment)
    try:
        yield command
    finally:
        if command.process.poll() is None:
            command.stop()


def refused(folder: Path, *words: str) -> tuple[int, str]:
    variables = {**os.environ, "PYTHONPATH": IMPORT_PATH}
    done = subprocess.run(
        [*REKINDLE, "run", *words],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    return done.returncode, done.stderr


def test_a_command_is_supervised_without_a_file_in_its_folder_and_environment(tmp_path: Path) -> None:
    script = 'echo "$PWD $GREETING $*"; exec sleep 1000'
    with running(tmp_path, "--", "sh", "-c", script, "sh", "--name", "-v", GREETING="hello") as command:
        assert eventually(lambda: command.worker("worker:sh:0").get("status") == "healthy")
        pid = command.worker("worker:sh:0")["pid"]
        (line,) = command.client.get("/workers/worker:sh:0/output")["lines"]
        assert line == f"{tmp_path} hello --name -v"
        os.kill(pid, signal.SIGKILL)
        assert eventually(lambda: command.worker("worker:sh:0").get("generation") == 2)
        with pytest.raises(ControlError, match="nothing was changed: the command line is the configuration"):
            command.client.post("/reload")
        assert command.stop() == 0
    assert not list(tmp_path.glob("*.toml"))


def test_a_command_may_have_another_name_and_state_directory(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with running(tmp_path, "--name", "web", "--state", str(state), "--", "sleep", "1000") as command:
        command.client = ControlClient(state / "control.sock")
        assert eventually(lambda: command.worker("worker:web:0").get("status") == "healthy")
    assert not (tmp_path / ".rekindle").exists()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--", "no-such-program", "x"], 'command line: there is no program "no-such-program" on its PATH'),
        (["--", "sleep 1000"], 'a shell line is written as ["sh", "-c", "…"]'),
        (["--"], "a command must follow --"),
        ([], "name a FILE, or a command after --"),
        (["workers.toml", "--", "true"], "workers.toml and a command after -- cannot be run together"),
        (["--name", "web", "workers.toml"], "--name is for a command after --; the FILE sets it itself"),
        (["--name", "a b", "--", "true"], "is not a valid worker name"),
    ],
)
def test_a_command_line_that_cannot_be_run_is_refused_with_code_2(
    words: list[str], reason: str, tmp_path: Path
) -> None:
    (tmp_path / "workers.toml").write_text("")
    code, said = refused(tmp_path, *words)
    assert code == 2
    assert reason in said


@pytest.mark.parametrize(
    ("program", "name"),
    [("sleep", "sleep"), ("./bin/my.app", "my-app"), ("/usr/bin/python3.11", "python3-11"), ("…", "command")],
)
def test_the_worker_has_the_name_of_its_program(program: str, name: str) -> None:
    assert name_of(program) == name


def test_one_command_is_an_essential_service() -> None:
    """It survives an outage, and a run that gives it up ends with its exit code (see test_essential)."""
    (spec,) = config_of(["sh", "-c", "exit 3"]).specs()
    assert spec.essential is True
    assert spec.restart == PRESETS["service"].restart
