"""Listening sockets of real workers: gunicorn, uvicorn, Python functions, forked and settled ones."""

from __future__ import annotations

import getpass
import os
import signal
import socket
import stat
import sys
from contextlib import suppress
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path

import pytest
from tests.processes.conftest import Run
from tests.processes.policies import shell, worker
from tests.processes.waiting import PATIENCE_S, eventually

from rekindle.actors import (
    PythonCall,
    ReadyPolicy,
    RolloutEnded,
    RolloutPolicy,
    SocketError,
    SocketSpec,
    Status,
    Surroundings,
    System,
    WorkerDied,
    WorkerSpec,
    command,
)
from rekindle.actors.processes.sockets.bound_socket import BoundSocket

HERE = str(Path(__file__).parents[3])
WEB = SocketSpec("web", "127.0.0.1:0")
SHOW = (
    'echo "$LISTEN_FDS $LISTEN_FDNAMES $((LISTEN_PID == $$)) {socket.b}"; ls -l /proc/$$/fd; exec sleep 1000'
)


def asked(system: System, name: str = "web") -> str:
    """What the server of a socket answers."""
    host, _, port = system.sockets()[name].rpartition(":")
    connection = HTTPConnection(host, int(port), timeout=PATIENCE_S)
    try:
        connection.request("GET", "/")
        return connection.getresponse().read().decode().strip()
    finally:
        connection.close()


def served(*argv: str, ready: str) -> WorkerSpec:
    run = command(sys.executable, "-m", *argv)
    return worker("w", run, sockets=(WEB,), cwd=HERE, ready=ReadyPolicy(output=ready))


UVICORN = served(
    "uvicorn", "tests.processes.web_application:asgi", "--fd", "{socket.web}", ready="running on"
)
GUNICORN = served(
    "gunicorn", "tests.processes.web_application:wsgi", "--no-control-socket", ready="Booting worker"
)


def healthy(system: System, id_: str = "w") -> int:
    system.wait_for(id_, Status.HEALTHY, timeout_s=PATIENCE_S)
    return system.status(id_).pid or 0


@pytest.mark.parametrize("spec", [UVICORN, GUNICORN], ids=["uvicorn", "gunicorn"])
def test_a_web_server_serves_a_socket_that_stays_open_while_it_is_killed(run: Run, spec: WorkerSpec) -> None:
    system = run(spec)
    before, address = healthy(system), system.sockets()["web"]
    assert asked(system)
    os.kill(before, signal.SIGKILL)
    host, _, port = address.rpartition(":")
    socket.create_connection((host, int(port)), timeout=PATIENCE_S).close()
    system.wait_until("w", lambda w: w.pid not in (None, before), timeout_s=PATIENCE_S)
    assert asked(system)
    assert system.sockets()["web"] == address


def test_a_connection_waits_in_the_backlog_until_a_worker_accepts_it(run: Run) -> None:
    system = run(replace(UVICORN, id="w"))
    healthy(system)
    system.stop_worker("w")
    host, _, port = system.sockets()["web"].rpartition(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as early:
        early.sendall(b"GET / HTTP/1.0\r\n\r\n")
        system.start_worker("w")
        assert early.recv(100).startswith(b"HTTP/1.1 200")


ONE_ANSWER = """
import os, socket
listening = socket.socket(fileno=3)
connection, _ = listening.accept()
connection.sendall(b"%d" % os.getpid())
connection.close()
listening.shutdown(socket.SHUT_RDWR)
"""


@pytest.mark.parametrize("kind", ["inet", "any port", "unix"])
def test_a_worker_that_shuts_its_socket_down_ends_it_for_no_later_worker(
    run: Run, tmp_path: Path, logs: list[str], kind: str
) -> None:
    """It was dead for good: every later worker was refused its first connection."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    place = tmp_path / "app.sock"
    listen = {"inet": f"127.0.0.1:{port}", "any port": "127.0.0.1:0", "unix": f"unix:{place}"}[kind]
    server = command(sys.executable, "-c", ONE_ANSWER)
    system = run(worker("w", server, sockets=(SocketSpec("app", listen),)))
    port = port if kind == "unix" else int(system.sockets()["app"].rpartition(":")[2])  # and it stays so
    answers: set[bytes] = set()

    def answered() -> bool:
        with socket.socket(socket.AF_UNIX if kind == "unix" else socket.AF_INET) as client, suppress(OSError):
            client.settimeout(PATIENCE_S)
            client.connect(str(place) if kind == "unix" else ("127.0.0.1", port))
            answers.add(client.recv(100))
        return len(answers - {b""}) == 3

    assert eventually(answered), system.output("w")
    assert any("a worker has shut app down for all workers" in line for line in logs)


@pytest.mark.parametrize("surroundings", [Surroundings(), Surroundings(nice=1)], ids=["executed", "settled"])
def test_a_worker_gets_its_sockets_from_descriptor_3_and_no_other_descriptor(
    run: Run, surroundings: Surroundings
) -> None:
    sockets = (SocketSpec("a", "127.0.0.1:0"), SocketSpec("b", "[::1]:0"))
    system = run(replace(shell("w", SHOW), sockets=sockets, surroundings=surroundings))
    healthy(system)
    assert eventually(lambda: len(system.output("w")) > 6)
    first, *listed = system.output("w")
    assert first == "2 a:b 1 4"
    shown = [line.split()[-3:] for line in listed if "->" in line]
    assert [number for number, _, _ in shown] == ["0", "1", "2", "3", "4"], listed
    assert all(target.startswith("socket:") for number, _, target in shown if number in "34")


@pytest.mark.parametrize("warm", [False, True])
def test_a_python_worker_finds_its_sockets_whether_it_is_executed_or_forked(run: Run, warm: bool) -> None:
    call = PythonCall("tests.processes.web_application:serve", warm=warm)
    system = run(worker("w", call, sockets=(WEB,)))
    pid = healthy(system)
    assert "executed" not in system.status("w").start_note
    assert asked(system) == f"{pid} web"


def test_a_program_that_does_not_exist_is_a_failed_start_as_without_sockets(run: Run) -> None:
    system = run(worker("w", command("no-such-program"), sockets=(WEB,)))
    assert eventually(lambda: bool(system.deaths("w")))
    assert system.deaths("w")[-1].cause == "spawn_failed"


def test_an_address_in_use_refuses_the_start_and_leaves_nothing(database: Path, no_traces: None) -> None:
    from rekindle.persistence import open_store

    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = SocketSpec("web", f"127.0.0.1:{other.getsockname()[1]}")
        system = System([replace(UVICORN, sockets=(taken,))], store=open_store(database))
        with pytest.raises(SocketError, match="Address already in use"):
            system.start()
        system.stop()


def test_a_unix_socket_has_its_mode_replaces_a_stale_one_and_goes_with_the_system(
    run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "app.sock"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    system = run(replace(shell("w", "sleep 1000"), sockets=(SocketSpec("app", f"unix:{path}", mode="600"),)))
    found = path.lstat()
    assert stat.S_ISSOCK(found.st_mode)
    assert stat.S_IMODE(found.st_mode) == 0o600
    system.stop()
    assert not path.exists()


def test_a_unix_path_that_another_process_serves_is_refused_and_stays(database: Path, tmp_path: Path) -> None:
    from rekindle.persistence import open_store

    path = tmp_path / "app.sock"
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen()
        spec = replace(shell("w", "sleep 1000"), sockets=(SocketSpec("app", f"unix:{path}"),))
        system = System([spec], store=open_store(database))
        with pytest.raises(SocketError, match="another process listens there"):
            system.start()
        system.stop()
        assert path.exists()


@pytest.mark.parametrize("put", ["link", "file"])
def test_a_change_gives_no_file_away_that_was_put_in_the_place_of_a_socket(
    run: Run, tmp_path: Path, put: str
) -> None:
    """The user of a worker owns the folder: with a link, it got any file of root at the next reload."""
    path, kept = tmp_path / "app.sock", tmp_path / "kept"
    app = SocketSpec("app", f"unix:{path}", mode="600")
    system = run(replace(shell("w", "sleep 1000"), sockets=(app,)))
    kept.touch(0o400)
    path.unlink()
    path.symlink_to(kept) if put == "link" else path.hardlink_to(kept)
    owner = getpass.getuser()
    with pytest.raises(SocketError, match="another file was put in its place"):
        system.change([replace(shell("w", "sleep 1000"), sockets=(replace(app, mode="666", owner=owner),))])
    assert stat.S_IMODE(kept.stat().st_mode) == 0o400
    system.stop()
    assert path.is_symlink() or path.exists(), "it is not the file of the socket"


def test_a_link_that_replaces_a_socket_as_soon_as_it_is_bound_gives_no_file_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, kept = tmp_path / "app.sock", tmp_path / "kept"
    kept.touch(0o400)

    class Swapped(socket.socket):
        def bind(self, address: object) -> None:
            super().bind(str(address))
            path.unlink()
            path.symlink_to(kept)

    monkeypatch.setattr(socket, "socket", Swapped)
    with pytest.raises(SocketError, match="another file was put in its place"):
        BoundSocket(SocketSpec("app", f"unix:{path}", mode="666"))
    assert stat.S_IMODE(kept.stat().st_mode) == 0o400


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a link of another user")
def test_a_socket_is_not_bound_behind_a_link_of_another_user(run: Run, tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir()
    (tmp_path / "run").symlink_to("ours")
    os.lchown(tmp_path / "run", 65534, 65534)
    app = SocketSpec("app", f"unix:{tmp_path}/run/app.sock")
    system = run(replace(shell("w", "sleep 1000"), sockets=(app,)))
    with system.events() as events:
        died = events.until(lambda event: isinstance(event, WorkerDied), PATIENCE_S)
    assert isinstance(died, WorkerDied)
    assert "a symbolic link of another user" in str(died.death)
    assert not any((tmp_path / "ours").iterdir())


def test_a_change_keeps_the_sockets_that_stay_and_closes_the_others(run: Run) -> None:
    one, two = SocketSpec("one", "127.0.0.1:0"), SocketSpec("two", "127.0.0.1:0")
    system = run(replace(shell("w", "sleep 1000"), sockets=(one, two)))
    before, pid = system.sockets(), healthy(system)
    system.change([replace(shell("w", "sleep 1000"), sockets=(replace(one, backlog=5), two))])
    assert (system.sockets(), system.status("w").pid) == (before, pid), "another backlog restarts no worker"
    system.change([replace(shell("w", "sleep 1000"), sockets=(one,))])
    assert eventually(lambda: system.sockets() == {"one": before["one"]})
    system.wait_until("w", lambda w: w.pid not in (None, pid), timeout_s=PATIENCE_S)


def test_a_change_to_an_address_in_use_is_refused_and_nothing_changes(run: Run) -> None:
    system = run(replace(shell("w", "sleep 1000"), sockets=(WEB,)))
    before, pid = system.sockets(), healthy(system)
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = SocketSpec("more", f"127.0.0.1:{other.getsockname()[1]}")
        with pytest.raises(SocketError):
            system.change([replace(shell("w", "sleep 1000"), sockets=(WEB, taken))])
    assert (system.sockets(), system.status("w").pid) == (before, pid)


def test_two_sockets_with_one_address_cannot_be_open_together(database: Path) -> None:
    from rekindle.persistence import open_store

    specs = [
        replace(shell(id_, "sleep 1000"), sockets=(SocketSpec(id_, "localhost:8000"),)) for id_ in ("a", "b")
    ]
    system = System(specs, store=open_store(database))
    with pytest.raises(SocketError, match="as the socket 'a' does"):
        system.start()
    system.stop()


def test_a_rollout_keeps_the_former_socket_until_it_has_ended(run: Run) -> None:
    before, after = SocketSpec("before", "127.0.0.1:0"), SocketSpec("after", "127.0.0.1:0")
    policy = RolloutPolicy(settle_s=0)
    spec = shell("w", "exec sleep 1000", rollout=policy, ready=ReadyPolicy(after_s=0), sockets=(before,))
    system = run(spec)
    healthy(system)
    with system.events() as events:
        system.change([replace(spec, sockets=(after,))])
        assert set(system.sockets()) == {"before", "after"}
        ended = events.until(lambda event: isinstance(event, RolloutEnded), PATIENCE_S)
    assert isinstance(ended, RolloutEnded)
    assert ended.problem == ""
    assert eventually(lambda: set(system.sockets()) == {"after"})
    assert system.status("w").generation == 2
