"""`rekindle run` with listening sockets: its own, and those that systemd hands over."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.processes.waiting import PATIENCE_S, eventually
from tests.running.conftest import REKINDLE, Run

FILE = """
[socket.web]
listen = "127.0.0.1:{port}"

[worker.web]
command = ["{python}", "-m", "uvicorn", "tests.processes.web_application:asgi", "--fd", "{{socket.web}}"]
cwd = "{root}"
sockets = ["web"]
ready = {{ output = "running on" }}
"""

ROOT = Path(__file__).parents[3]

SYSTEMD = """
import os, socket, sys
made = socket.create_server(("127.0.0.1", 0))
open(sys.argv[1], "w").write(str(made.getsockname()[1]))
os.dup2(made.detach(), 3)
os.set_inheritable(3, True)
os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1", "LISTEN_FDNAMES": "unknown"}
os.execvp(sys.argv[2], sys.argv[2:])
"""
"""Starts a program as a socket unit does."""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as made:
        return int(made.getsockname()[1])


def answers(port: int) -> bool:
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as connection:
        connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
        return connection.recv(100).startswith(b"HTTP/1.1 200")


def text_of(port: int) -> str:
    return FILE.format(port=port, python=sys.executable, root=ROOT)


def checked(file: Path) -> str:
    found = subprocess.run(
        [*REKINDLE, "config", "check", str(file)], capture_output=True, text=True, check=False
    )
    return found.stdout + found.stderr


def test_config_check_refuses_an_address_in_use_as_run_does_but_not_that_of_its_own_supervisor(
    tmp_path: Path, run: Run
) -> None:
    file = tmp_path / "workers.toml"
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        file.write_text(text_of(port))
        assert "socket.web.listen: cannot listen on 127.0.0.1" in checked(file)
        refused = subprocess.run([*REKINDLE, "run", str(file)], capture_output=True, text=True, check=False)
        assert refused.returncode == 1, "systemd does not restart after a 2"
        assert "cannot listen on 127.0.0.1" in refused.stderr
    run(text_of(port)).wait_for("worker:web:0", status="healthy")
    assert answers(port)
    assert "no problems" in checked(file)


def test_a_socket_that_systemd_opened_is_passed_on_to_the_worker(tmp_path: Path, run: Run) -> None:
    port = tmp_path / "port"
    running = run(text_of(free_port()), within=[sys.executable, "-c", SYSTEMD, str(port)])
    running.wait_for("worker:web:0", status="healthy")
    assert eventually(lambda: answers(int(port.read_text())))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may start workers as another user")
def test_a_folder_that_a_worker_put_in_the_place_of_its_socket_fails_only_that_worker(
    run: Run, tmp_path: Path
) -> None:
    """A killed supervisor could not start again, with any worker, because of the user of one."""
    path = tmp_path / "theirs" / "app.sock"
    path.mkdir(parents=True)
    os.chown(path.parent, 65534, 65534)
    running = run(THEIRS)
    running.wait_for("worker:good:0", status="healthy")
    assert eventually(
        lambda: f"{COULD_NOT} unix:{path}: there is a file that is not a socket" in running.text()
    )
    path.rmdir()
    running.wait_for("worker:app:0", status="healthy")
    assert path.is_socket()
    assert running.stop() == 0


COULD_NOT = "worker:app:0 could not start: socket 'app' cannot listen on"
THEIRS = """
[socket.app]
listen = "unix:theirs/app.sock"
[worker.app]
command = ["sleep", "1000"]
sockets = ["app"]
user = "nobody"
restart = { initial_delay_s = 0.2, min_delay_s = 0.2, max_delay_s = 0.2, max_in_window = 1000 }
[worker.good]
command = ["sleep", "1000"]
"""


def test_a_socket_stays_open_while_a_group_has_no_workers(run: Run) -> None:
    port = free_port()
    running = run(text_of(port))
    running.wait_for("worker:web:0", status="healthy")
    for count in (0, 1, 0):  # an order waits for the processes that the one before removes
        running.order("groups", "web", "scale", count=count)
    assert eventually(lambda: running.client.get("/workers")["workers"] == [])
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as waiting:
        running.order("groups", "web", "scale", count=1)
        waiting.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert waiting.recv(100).startswith(b"HTTP/1.1 200")


def test_the_socket_of_a_group_that_begins_with_no_workers_is_open_and_closes_with_its_table(
    tmp_path: Path, run: Run
) -> None:
    port = free_port()
    running = run(text_of(port) + "count = 0\n[worker.other]\ncommand = ['sleep', '1000']\n")
    running.wait_for("worker:other:0", status="healthy")
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S):
        pass
    (tmp_path / "workers.toml").write_text("[worker.other]\ncommand = ['sleep', '1000']\n")
    running.order("reload")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
