"""The client: its errors without a server, with a wrong server, and for malformed answers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.control.conftest import WORKER, Served

from rekindle.cli.client import (
    ControlClient,
    ControlError,
    InvalidArgumentsError,
    NoSupervisorError,
    OrderRefusedError,
    UnknownTargetError,
    path_of,
)


@contextmanager
def impostor(path: Path, says: bytes) -> Iterator[ControlClient]:
    """A server that reads a request and says this."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(says)

        thread = threading.Thread(target=answer)
        thread.start()
        yield ControlClient(path)
        thread.join()


def test_without_a_socket_there_is_no_supervisor(tmp_path: Path) -> None:
    with pytest.raises(NoSupervisorError, match="no supervisor listens"):
        ControlClient(tmp_path / "control.sock").get("/info")


def test_a_socket_that_was_left_behind_is_not_a_supervisor(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "control.sock"))
    with pytest.raises(NoSupervisorError):
        ControlClient(tmp_path / "control.sock").get("/info")


@pytest.mark.parametrize(
    ("says", "kind"),
    [
        (b"", NoSupervisorError),
        (b"HTTP/1.1 200", NoSupervisorError),
        (b"HTTP/1.1 200 OK\r\n\r\nhello", ControlError),
        (b"hello\r\n\r\n{}", ControlError),
        (b"HTTP/1.1 500 Broken\r\n\r\n[]", ControlError),
    ],
)
def test_a_malformed_answer_is_reported(tmp_path: Path, says: bytes, kind: type[Exception]) -> None:
    with impostor(tmp_path / "control.sock", says) as client, pytest.raises(kind):
        client.get("/info")


def test_the_servers_words_come_as_errors_of_their_own(served: Served) -> None:
    with pytest.raises(UnknownTargetError, match="absent"):
        served.client.get(path_of("workers", "absent"))
    with pytest.raises(OrderRefusedError, match="is not a group"):
        served.client.post(path_of("groups", "absent", "restart"))
    with pytest.raises(InvalidArgumentsError, match="count"):
        served.client.post(path_of("groups", "tag", "scale"))


@pytest.mark.parametrize("name", ["", "a b", "a/b", "../pause", "a\r\nx: y", "ü", "\udc80", "?limit=1"])
def test_an_impossible_name_is_an_unknown_worker_or_path(served: Served, name: str) -> None:
    with pytest.raises(ControlError) as refused:
        served.client.post(path_of("workers", name, "restart"))
    assert refused.value.status == 404


def test_a_path_with_a_line_break_is_never_sent(served: Served) -> None:
    with pytest.raises(InvalidArgumentsError):
        served.client.get(f"/workers/{WORKER} HTTP/1.1\r\nx: y")
