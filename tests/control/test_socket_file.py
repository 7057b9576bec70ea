"""Who may come near the socket: its file, its directory, and the peer at the other end."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.control.conftest import Served
from tests.control.operator_double import OperatorDouble
from tests.processes.conftest import Run

from rekindle.actors.gateways.control import ControlServer
from rekindle.actors.gateways.control.socket_file import SOCKET_NAME, SocketFile
from rekindle.actors.gateways.gateway_errors import GatewayError, UnsafePathError
from rekindle.cli.client import ControlClient

NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
NOBODY = 65534


@pytest.fixture
def state(tmp_path: Path) -> Path:
    path = tmp_path / "state"
    path.mkdir(mode=0o700)
    return path


def leave_a_dead_socket(state: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(state / SOCKET_NAME))


def test_directory_and_socket_are_private_under_any_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        bound = SocketFile(tmp_path / "state", replace_stale=False)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    assert stat.S_IMODE(bound.path.stat().st_mode) == 0o600
    bound.close()
    assert not bound.path.exists()


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o707, 0o1777])
def test_a_directory_that_others_can_write_is_refused(state: Path, mode: int) -> None:
    state.chmod(mode)
    with pytest.raises(UnsafePathError, match="is writable by other users"):
        SocketFile(state, replace_stale=True)
    assert list(state.iterdir()) == []


@NEEDS_ROOT
def test_a_directory_of_another_user_is_refused(state: Path) -> None:
    os.chown(state, NOBODY, NOBODY)
    with pytest.raises(UnsafePathError, match="another user"):
        SocketFile(state, replace_stale=True)


def test_a_symbolic_link_in_the_sockets_place_is_refused_and_left_alone(state: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (state / SOCKET_NAME).symlink_to(victim)
    with pytest.raises(UnsafePathError, match="symbolic link"):
        SocketFile(state, replace_stale=True)
    assert victim.read_text() == "precious"
    assert (state / SOCKET_NAME).is_symlink()


def test_a_file_in_the_sockets_place_is_refused_and_left_alone(state: Path) -> None:
    (state / SOCKET_NAME).write_text("precious")
    with pytest.raises(UnsafePathError, match="not a socket"):
        SocketFile(state, replace_stale=True)
    assert (state / SOCKET_NAME).read_text() == "precious"


def test_a_dead_servers_socket_is_replaced_only_by_the_holder_of_the_lock(state: Path) -> None:
    leave_a_dead_socket(state)
    with pytest.raises(GatewayError, match="dead"):
        SocketFile(state, replace_stale=False)
    SocketFile(state, replace_stale=True).close()


def test_a_living_servers_socket_is_never_replaced(served: Served) -> None:
    with pytest.raises(GatewayError, match="in use by another supervisor"):
        SocketFile(served.path.parent, replace_stale=True)
    assert served.client.get("/info")["pid"] == os.getpid()


def test_a_socket_that_is_no_longer_ours_is_left_alone(state: Path) -> None:
    bound = SocketFile(state, replace_stale=False)
    bound.path.unlink()
    leave_a_dead_socket(state)
    bound.close()
    assert (state / SOCKET_NAME).is_socket()


def test_a_path_longer_than_a_sockets_address_is_served(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    bound = SocketFile(deep, replace_stale=False)
    bound.socket.listen()
    with pytest.raises(Exception, match="in time"):  # a server that accepts and does not answer
        ControlClient(bound.path, timeout_s=0.05).get("/info")
    bound.close()


@NEEDS_ROOT
@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_peer_must_be_us_or_root(run: Run) -> None:
    """The files' modes are opened on purpose: what is left is the check of the peer."""
    with TemporaryDirectory() as directory, ControlServer(OperatorDouble(run()), Path(directory)) as server:
        Path(directory).chmod(0o755)
        server.path.chmod(0o666)
        # curl may find the connection closed before it has sent anything; then it is asked again.
        answers = [_asked_by_another_user(server.path)]
        while not answers[-1] and len(answers) < TRIES:
            answers.append(_asked_by_another_user(server.path))
    assert answers[-1].startswith("HTTP/1.1 403")
    assert '"forbidden"' in answers[-1]


TRIES = 20


def _asked_by_another_user(path: Path) -> str:
    """What another user is answered; nothing if the connection was closed at once."""
    done = subprocess.run(
        ["curl", "-sS", "-i", "--unix-socket", path, "http://rekindle/api/v1/info"],
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        capture_output=True,
        text=True,
        timeout=30,
        cwd="/",
    )
    return done.stdout
