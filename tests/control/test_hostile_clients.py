"""Clients that stall, flood, or send nonsense: the server answers others, and never breaks."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.control.conftest import Served
from tests.processes.waiting import eventually

from rekindle.actors.gateways.api.request_bodies import LARGEST_BODY
from rekindle.actors.gateways.serving import uvicorn_server

SHARED = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients have little time to send their request."""
    monkeypatch.setattr(uvicorn_server, "REQUEST_S", 0.2)


def connected(path: Path) -> socket.socket:
    client = socket.socket(socket.AF_UNIX)
    client.connect(str(path))  # waits while many others do
    client.settimeout(20)
    return client


def answer(client: socket.socket) -> bytes:
    """All that comes until the server closes."""
    received = bytearray()
    try:
        while chunk := client.recv(65536):
            received += chunk
    except ConnectionResetError:
        pass
    return bytes(received)


def sent(path: Path, request: bytes) -> bytes:
    with connected(path) as client:
        try:
            client.sendall(request)
            client.shutdown(socket.SHUT_WR)
        except (BrokenPipeError, OSError):
            pass  # it has received enough
        return answer(client)


def posted(path: Path, body: bytes, where: str = "pause") -> bytes:
    head = f"POST /api/v1/{where} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
    head += f"content-length: {len(body)}\r\n\r\n"
    with connected(path) as client:
        client.sendall(head.encode() + body)
        return answer(client)


def status(received: bytes) -> int:
    return int(received.split(b" ", 2)[1])


@SHARED
@given(
    body=st.binary(max_size=200)
    | st.recursive(st.none() | st.text(), st.lists).map(lambda v: str(v).encode())
)
def test_a_hostile_body_is_refused_and_breaks_nothing(served: Served, body: bytes) -> None:
    assert status(posted(served.path, body)) in (200, 400, 422)


@SHARED
@given(noise=st.binary(min_size=1, max_size=300))
def test_what_is_not_http_breaks_nothing(served: Served, noise: bytes) -> None:
    received = sent(served.path, noise + b"\r\n\r\n")
    assert received == b"" or status(received) in (400, 404, 405)


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 60_000,
        b'{"reason":' * 6_000,
        b'{"reason": "\\ud800"}',
        b'{"for_s": 1e999}',
        b'{"for_s": NaN}',
        b'{"reason": "\xff"}',
        b"\x00",
        b"1" * 60_000,
    ],
)
def test_a_body_made_to_hurt_is_refused(served: Served, body: bytes) -> None:
    assert status(posted(served.path, body)) in (400, 422)


def test_a_body_that_is_too_large_is_refused_without_being_buffered(served: Served) -> None:
    assert status(posted(served.path, b" " * (LARGEST_BODY + 1))) == 413


def test_headers_without_end_are_refused(served: Served) -> None:
    assert status(sent(served.path, b"GET /api/v1/info HTTP/1.1\r\nx: " + b"y" * 200_000)) == 400


def test_a_name_that_no_worker_can_have_is_refused_in_every_place(served: Served) -> None:
    for name in ("..%2f..", "%00", "%ff", "a" * 65, "<script>", "%1b%5b31m"):
        received = sent(served.path, f"GET /api/v1/workers/{name} HTTP/1.0\r\n\r\n".encode())
        assert received == b"" or status(received) == 404


def test_a_client_that_sends_nothing_is_cut(hasty: None, served: Served) -> None:
    with connected(served.path) as client:
        assert answer(client) == b""


def test_a_client_that_sends_drop_by_drop_is_cut(hasty: None, served: Served) -> None:
    with connected(served.path) as client:
        client.sendall(b"POST /api/v1/pause HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n")

        def another_drop_is_refused() -> bool:
            try:
                client.sendall(b" ")
            except OSError:
                return True
            return False

        assert eventually(another_drop_is_refused)


def test_a_hundred_idle_connections_do_not_delay_other_clients(served: Served) -> None:
    with ExitStack() as stack:
        idle = [stack.enter_context(connected(served.path)) for _ in range(100)]
        began = time.monotonic()
        assert served.client.get("/info")["workers"] == 1
        assert time.monotonic() - began < 10.0
        still_open = [client for client in idle if not closed(client)]
        assert len(still_open) <= uvicorn_server.MOST_CONNECTIONS


def closed(client: socket.socket) -> bool:
    client.setblocking(False)
    try:
        return client.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def test_a_client_that_never_reads_its_answers_is_cut(hasty: None, served: Served) -> None:
    request = b"GET /api/v1/openapi.json HTTP/1.1\r\nhost: x\r\n\r\n"
    with connected(served.path) as client:
        client.setblocking(False)

        def sending_is_refused() -> bool:
            try:
                client.sendall(request * 100)
            except BlockingIOError:
                return False
            except OSError:
                return True
            return False

        assert eventually(sending_is_refused)
    assert served.client.get("/info")["workers"] == 1
