"""`rekindle service` on a machine that a real systemd runs, with a system's and a user's service manager."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.processes.waiting import PATIENCE_S, eventually
from tests.services import unavailable

BOOT = Path(__file__).with_name("boot")
REPOSITORY = Path(__file__).resolve().parents[3]
REKINDLE = Path(sys.executable).with_name("rekindle")
FOLDER = "/srv/app"
ONE = '[worker.web]\ncommand = ["sleep", "1000"]\n'
TWO = ONE + '[worker.mail]\ncommand = ["sleep", "1001"]\n'
PROBING = """
[worker.probe]
command = ["sh", "-c", '''
for each in /usr /etc /tmp /srv/app; do touch $each/touched; done
grep NoNewPrivs /proc/self/status > /srv/app/rights
exec sleep 1000
''']
"""


class Machine:
    """A machine that systemd has booted. What a test changes in its files is gone with it."""

    def __init__(self, first_process: int) -> None:
        self._enter = ["nsenter", "-t", str(first_process), "-m", "-p", "-u", "-i", "-n", "-C", "-r", "-w"]
        self.variables: dict[str, str] = {}

    def attempt(self, *command: str | Path, given: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command there."""
        own = [f"{name}={value}" for name, value in self.variables.items()]
        return subprocess.run(
            [*self._enter, "env", *own, *map(str, command)],
            input=given,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def run(self, *command: str | Path, given: str | None = None) -> str:
        """Run a command that must succeed; what it prints."""
        done = self.attempt(*command, given=given)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def write(self, path: str, text: str) -> None:
        """Write a file."""
        self.run("sh", "-c", 'mkdir -p "$(dirname "$0")" && cat > "$0"', path, given=text)

    def says(self, *command: str) -> bool:
        """Whether a command succeeds."""
        return self.attempt(*command).returncode == 0


class Service:
    """A unit as its service manager shows it."""

    def __init__(self, machine: Machine, name: str, *scope: str) -> None:
        self._machine = machine
        self._name = name
        self._scope = scope

    def install(self, text: str, *options: str) -> None:
        """Write the file and install it."""
        self._machine.write(f"{FOLDER}/{self._name}.toml", text)
        file = f"{FOLDER}/{self._name}.toml"
        said = self._machine.run(
            REKINDLE, "service", "install", file, "--name", self._name, *self._scope, *options
        )
        assert f"Installed and started {self._name}.service." in said

    def remove(self) -> None:
        self._machine.run(REKINDLE, "service", "remove", self._name, *self._scope)

    def control(self, *words: str) -> str:
        """Have systemctl do something."""
        return self._machine.run("systemctl", *self._scope, *words, f"{self._name}.service")

    def shown(self, name: str) -> str:
        """A property of the unit."""
        shown = self.control("show", "--property", name)
        return shown.strip().partition("=")[2]

    @property
    def main_pid(self) -> int:
        return int(self.shown("MainPID"))

    def workers(self) -> dict[str, int | None]:
        """The pids of the workers, as the supervisor tells them."""
        said = self._machine.attempt(REKINDLE, "status", "-c", f"{FOLDER}/{self._name}.toml", "--json")
        if said.returncode != 0:
            return {}
        return {each["id"]: each["pid"] for each in json.loads(said.stdout)["workers"]}

    def runs_another(self, former: int) -> bool:
        """Whether systemd has replaced a supervisor by one that is ready."""
        return self.shown("ActiveState") == "active" and self.main_pid not in (0, former)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    if os.geteuid() != 0:
        unavailable("only root can boot systemd in namespaces of its own")
    for program in ("systemctl", "unshare", "nsenter"):
        if shutil.which(program) is None:
            unavailable(f"{program} is not installed")
    folder = tmp_path_factory.mktemp("machine")
    shared = [REPOSITORY, Path(sys.prefix), Path(sys.base_prefix)]
    with subprocess.Popen(
        ["sh", str(BOOT), str(folder), *map(str, shared)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as boot:
        try:
            yield _booted(boot)
        finally:
            boot.kill()
            boot.wait()
            for group in Path("/sys/fs/cgroup").glob(f"**/rekindle-machine-{boot.pid}"):
                assert eventually(lambda group=group: _removed(group))  # type: ignore[misc]


def _booted(boot: subprocess.Popen[str]) -> Machine:
    children = Path(f"/proc/{boot.pid}/task/{boot.pid}/children")
    machine = None

    def is_up() -> bool:
        nonlocal machine
        first = children.read_text().split() if boot.poll() is None else []
        if not first:
            return boot.poll() is not None
        machine = Machine(int(first[0]))
        return machine.attempt("systemctl", "is-system-running").stdout.strip() in ("running", "degraded")

    assert eventually(is_up, 3 * PATIENCE_S)
    if boot.poll() is not None:
        assert boot.stdout is not None
        unavailable(f"systemd cannot be booted in namespaces here: {boot.stdout.read().strip()}")
    assert machine is not None
    return machine


def _removed(group: Path) -> bool:
    """Remove a control group and those in it, as soon as nothing is left of its processes."""
    try:
        for folder, _, _ in os.walk(group, topdown=False):
            os.rmdir(folder)
    except OSError:
        return not group.exists()
    return True


def test_systemd_starts_restarts_reloads_and_removes_a_service(machine: Machine) -> None:
    service = Service(machine, "app")
    service.install(ONE)
    # It is ready when `install` returns: systemd waits until the supervisor says so.
    assert service.shown("ActiveState") == "active"
    assert service.shown("UnitFileState") == "enabled"
    first, worker = service.main_pid, service.workers()["worker:web:0"]
    assert worker is not None

    machine.run("kill", "-KILL", str(first))
    assert eventually(lambda: service.runs_another(first), 3 * PATIENCE_S)
    assert service.workers()["worker:web:0"] not in (None, worker)
    assert eventually(lambda: not machine.says("kill", "-0", str(worker)))

    second = service.main_pid
    machine.write(f"{FOLDER}/app.toml", TWO)
    service.control("reload")
    assert eventually(lambda: service.workers().get("worker:mail:0") is not None)
    assert service.main_pid == second

    left = [pid for pid in service.workers().values() if pid is not None]
    service.remove()
    assert not machine.says("test", "-e", "/etc/systemd/system/app.service")
    assert not machine.says("systemctl", "is-active", "app.service")
    for pid in (second, *left):
        assert not machine.says("kill", "-0", str(pid))


def test_systemd_replaces_a_supervisor_that_does_not_answer(machine: Machine) -> None:
    service = Service(machine, "frozen")
    machine.write("/etc/systemd/system/frozen.service.d/soon.conf", "[Service]\nWatchdogSec=3\n")
    service.install(ONE)
    first = service.main_pid
    machine.run("kill", "-STOP", str(first))
    assert eventually(lambda: service.runs_another(first), 3 * PATIENCE_S)
    assert service.shown("NRestarts") == "1"
    assert eventually(lambda: service.workers().get("worker:web:0") is not None)
    service.remove()


def test_an_upgraded_supervisor_stays_the_main_process_and_its_workers_run_on(machine: Machine) -> None:
    service = Service(machine, "upgraded")
    service.install(ONE)
    before, main_pid = service.workers(), service.main_pid
    machine.run(REKINDLE, "upgrade", "-c", f"{FOLDER}/upgraded.toml")
    assert service.workers() == before
    assert service.main_pid == main_pid
    assert service.shown("ActiveState") == "active"
    assert service.shown("NRestarts") == "0"
    service.remove()


def test_a_worker_of_the_system_service_cannot_change_the_system(machine: Machine) -> None:
    service = Service(machine, "hardened")
    service.install(PROBING)
    assert eventually(lambda: machine.says("test", "-s", f"{FOLDER}/rights"))
    assert machine.run("cat", f"{FOLDER}/rights").split() == ["NoNewPrivs:", "1"]
    assert machine.says("test", "-e", f"{FOLDER}/touched")
    for folder in ("/usr", "/etc", "/tmp"):  # read-only, read-only, and not the one of the machine
        assert not machine.says("test", "-e", f"{folder}/touched")
    service.remove()


def test_a_user_has_a_service_of_its_own(machine: Machine) -> None:
    machine.run("systemctl", "start", "user@0.service")
    machine.variables["XDG_RUNTIME_DIR"] = "/run/user/0"
    service = Service(machine, "mine", "--user")
    service.install(ONE)
    assert service.shown("UnitFileState") == "enabled"
    is_written = ("sh", "-c", "test -e ~root/.config/systemd/user/mine.service")
    assert machine.says(*is_written)
    first = service.main_pid
    assert service.workers()["worker:web:0"] is not None
    machine.run("kill", "-KILL", str(first))
    assert eventually(lambda: service.runs_another(first), 3 * PATIENCE_S)
    service.remove()
    assert not machine.says(*is_written)
