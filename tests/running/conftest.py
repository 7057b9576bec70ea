"""The real `rekindle run`, as a process of its own in a state directory of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest
from tests.leftovers import ends_with_tests
from tests.processes.waiting import PATIENCE_S, ended, eventually
from tests.services import postgres_service, postgres_url, redis_url

from rekindle.cli.chaos.real.empty_database import empty_database
from rekindle.cli.client import ControlClient, ControlError, path_of

__all__ = ["postgres_service", "postgres_url", "redis_url"]

ROOT = Path(__file__).parents[2]
IMPORT_PATH = os.pathsep.join([str(ROOT / "scripts" / "import_root"), str(ROOT)])
REQUEST_EVERY_S = 0.02
"""A request takes the supervisor half a millisecond, and there are many of them."""
REKINDLE = [sys.executable, "-c", "from rekindle.cli.main import main; main()"]


class Running:
    """One `rekindle run`."""

    def __init__(
        self,
        file: Path,
        *options: str,
        stderr: int | None = None,
        within: Sequence[str] = (),
        **environment: str,
    ) -> None:
        self.file = file
        self.log = file.with_suffix(".log")
        self._give_a_database()
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*within, *REKINDLE, "run", str(file), *options],
                env={**os.environ, "PYTHONPATH": IMPORT_PATH, **environment},
                stdin=subprocess.DEVNULL,
                stderr=log if stderr is None else stderr,
                cwd="/",
            )
        ends_with_tests(self.process.pid)
        self.client = ControlClient(file.parent / ".rekindle" / "control.sock")

    def _give_a_database(self) -> None:
        """Have the tables there already: what makes them takes longer to load than most tests take."""
        state = self.file.parent / ".rekindle"
        if not state.exists():
            state.mkdir(0o700)
            shutil.copy(empty_database(), state / "rekindle.db")

    def workers(self) -> dict[str, Any]:
        """Every worker by its id; none while the supervisor does not answer."""
        try:
            return {worker["component_id"]: worker for worker in self.client.get("/workers")["workers"]}
        except ControlError:
            return {}

    def worker(self, name: str) -> Any:
        """One worker, as the control socket shows it; empty while the supervisor does not answer."""
        return self.workers().get(name, {})

    def wait_for(self, name: str, **wanted: object) -> Any:
        """Wait until a worker's status has all of these values at the same time."""
        found: dict[str, Any] = {}

        def is_as_wanted() -> bool:
            nonlocal found
            found = self.worker(name)
            return all(found.get(key) == value for key, value in wanted.items())

        assert eventually(is_as_wanted, every_s=REQUEST_EVERY_S), f"{name}: {found}\n{self.text()}"
        return found

    def order(self, *parts: str, **body: object) -> Any:
        """Give an order over the control socket."""
        return self.client.post(path_of(*parts), dict(body))

    def signal(self, signum: int) -> None:
        """Send the supervisor a signal."""
        self.process.send_signal(signum)

    def end(self) -> int:
        """Wait for its end; the exit code."""
        return self.process.wait(PATIENCE_S)

    def stop(self) -> int:
        """Stop it as Ctrl-C would; the exit code."""
        self.signal(signal.SIGINT)
        return self.end()

    def kill(self) -> None:
        """End it as the out-of-memory killer would."""
        self.signal(signal.SIGKILL)
        self.end()

    def text(self) -> str:
        """Everything that it logged."""
        return self.log.read_text()


class Run(Protocol):
    """Writes a file and runs it."""

    def __call__(
        self,
        text: str,
        *options: str,
        stderr: int | None = None,
        within: Sequence[str] = (),
        **environment: str,
    ) -> Running: ...


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Runs files, and ends what is left at the end of the test."""
    running: list[Running] = []

    def run(
        text: str,
        *options: str,
        stderr: int | None = None,
        within: Sequence[str] = (),
        **environment: str,
    ) -> Running:
        file = tmp_path / "workers.toml"
        file.write_text(text)
        running.append(Running(file, *options, stderr=stderr, within=within, **environment))
        return running[-1]

    yield run
    for each in running:
        if each.process.poll() is None:
            each.signal(signal.SIGTERM)
            try:
                each.end()
            except subprocess.TimeoutExpired:
                each.kill()
                raise


# ── upgrades ─────────────────────────────────────────────────────────────────────────────

BEAT = '''
def main(worker):
    """Say that it is alive, and where it is."""
    number = 0
    while worker.running:
        print(f"beat {number}", flush=True)
        number += 1
        worker.wait(0.05)
'''

CREW = """
[worker.plain]
command = ["bash", "-c", "exec 9<> <(:); while true; do echo line $((i++)); read -rt 0.02 -u 9; done"]
[worker.bound]
command = ["sleep", "1000"]
pdeathsig = true
[worker.beat]
python = "beat:main"
cwd = "."
health = { heartbeat_interval_s = 0.2, staleness_s = 1, max_misses = 2 }
[http]
listen = "127.0.0.1:0"
"""

STEADY = "worker:plain:0", "worker:bound:0", "worker:beat:0"


@pytest.fixture
def crew(run: Run, tmp_path: Path) -> Running:
    (tmp_path / "beat.py").write_text(BEAT)
    running = run(CREW, PYTHONPATH="")  # which would hide another installation
    for name in STEADY:
        running.wait_for(name, status="healthy")
    return running


class Other(Protocol):
    """Makes another installation, with one line of one file changed; the path of its interpreter."""

    def __call__(self, file: str, text: str, instead: str) -> str: ...


@pytest.fixture
def other(tmp_path: Path) -> Other:
    def install(file: str, text: str, instead: str) -> str:
        home = tmp_path / "other"
        shutil.copytree(ROOT / "scripts" / "import_root" / "rekindle", home / "code" / "rekindle")
        changed = home / "code" / "rekindle" / file
        assert text in changed.read_text()
        changed.write_text(changed.read_text().replace(text, instead, 1))
        # What `python -m venv` makes, without pip.
        packages = home / "lib" / f"python3.{sys.version_info[1]}" / "site-packages"
        packages.mkdir(parents=True)
        (home / "bin").mkdir()
        python = home / "bin" / "python"
        python.symlink_to(Path(sys.executable).resolve())
        (home / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).resolve().parent}\n")
        (packages / "other.pth").write_text(f"{home / 'code'}\n{sysconfig.get_path('purelib')}\n")
        return str(python)

    return install


def pids(running: Running) -> dict[str, int]:
    """The processes that the supervisor says it has, all of which live."""
    found = {name: worker["pid"] for name, worker in running.workers().items()}
    assert not [name for name, pid in found.items() if pid is None or ended(pid)], running.text()
    return found
