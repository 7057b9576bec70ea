"""`rekindle upgrade` from the wheel of one version to that of another, each in its own environment."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.processes.waiting import PATIENCE_S, ended, eventually

from rekindle.cli.client import ControlClient, ControlError

FILE = """
[worker.plain]
command = ["sleep", "1000"]
[worker.bound]
command = ["sleep", "1000"]
pdeathsig = true
"""


class Supervisor:
    """`rekindle run`, by the interpreter of an environment."""

    def __init__(self, python: Path, file: Path) -> None:
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith("PYTHON")
        }
        command = [str(python), "-m", "rekindle", "run", str(file)]
        self.process = subprocess.Popen(command, env=self.environment, cwd="/", stdin=subprocess.DEVNULL)
        self.client = ControlClient(file.parent / ".rekindle" / "control.sock")

    def workers(self) -> dict[str, Any]:
        """Every worker by its id; none while the supervisor does not answer."""
        try:
            return {each["component_id"]: each for each in self.client.get("/workers")["workers"]}
        except ControlError:
            return {}

    def are_healthy(self) -> bool:
        """Whether both workers are."""
        return [each["status"] for each in self.workers().values()] == ["healthy", "healthy"]

    def pids(self) -> dict[str, int]:
        """The processes of the workers."""
        return {id_: each["pid"] for id_, each in self.workers().items()}


@contextmanager
def running(python: Path, file: Path) -> Iterator[Supervisor]:
    supervisor = Supervisor(python, file)
    try:
        yield supervisor
    finally:
        supervisor.process.send_signal(signal.SIGTERM)
        assert supervisor.process.wait(PATIENCE_S) == 0


def test_the_last_release_hands_its_workers_over_to_the_built_wheel(
    installed_release: Path, installed_wheel: Path, tmp_path: Path
) -> None:
    file = tmp_path / "workers.toml"
    file.write_text(FILE)
    with running(installed_release, file) as supervisor:
        assert eventually(supervisor.are_healthy)
        before, former = supervisor.pids(), supervisor.client.get("/info")["version"]
        command = [str(installed_wheel), "-m", "rekindle", "upgrade", "--python", str(installed_wheel)]
        done = subprocess.run(
            [*command, "-c", str(file)],
            env=supervisor.environment,
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
        built = supervisor.client.get("/info")["version"]
        assert former != built
        assert done.returncode == 0, done.stderr
        assert f"was upgraded from {former} to {built}" in done.stdout
        assert supervisor.pids() == before
        assert not [pid for pid in before.values() if ended(pid)]
        os.kill(before["worker:bound:0"], signal.SIGKILL)
        assert eventually(lambda: supervisor.workers()["worker:bound:0"]["generation"] == 2)
        assert eventually(supervisor.are_healthy)
