"""What a head of Ray says of this node, from answers that a real one of Ray 2.60 gave."""

from __future__ import annotations

import platform
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

from rekindle.actors.gateways.ray.head_check import is_reached, mismatch, refusal, token_of

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed")

SETTINGS = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
REFUSED = (
    b"\x88@\x0ccontent-type\x10application/grpc\x00\x0bgrpc-status\x0216"
    b"\x00\x0cgrpc-message>InvalidAuthToken: Authentication token is missing or incorrect"
)


def frame(kind: int, flags: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags, 0, 0, 0, 1]) + payload


def versions(ray: str, python: str) -> bytes:
    """The frames of an answer with these versions."""
    text = f'{{"ray_version": "{ray}", "python_version": "{python}", "ray_init_cluster": false}}'.encode()
    message = b"\n\x00\x12" + bytes([len(text)]) + text
    body = b"\0" + len(message).to_bytes(4, "big") + message
    head = b"\x88@\x0ccontent-type\x10application/grpc"
    return frame(1, 4, head) + frame(0, 0, body) + frame(1, 5, b"@\x0bgrpc-status\x010")


class Head:
    """Answers each connection with the same bytes."""

    def __init__(self, answer: bytes, *, hangs_up: bool = False) -> None:
        self._answer, self._hangs_up, self.asked = answer, hangs_up, b""
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                client = self._socket.accept()[0]
            except OSError:
                return
            with client, suppress(OSError):
                self.asked = client.recv(65536)
                client.sendall(SETTINGS + self._answer)
                while not self._hangs_up and client.recv(65536):
                    pass

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(20.0)


@pytest.fixture
def heads() -> Iterator[list[Head]]:
    made: list[Head] = []
    yield made
    for head in made:
        head.close()


def a_head(heads: list[Head], answer: bytes, *, hangs_up: bool = False) -> Head:
    heads.append(Head(answer, hangs_up=hangs_up))
    return heads[-1]


def with_token(folder: Path) -> dict[str, str]:
    (folder / "token").write_text("a1b2\n")
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(folder / "token")}


def test_a_head_that_refuses_the_token_is_named_with_what_to_do(heads: list[Head], tmp_path: Path) -> None:
    head = a_head(heads, frame(1, 5, REFUSED))
    said = mismatch(head.address, with_token(tmp_path))
    assert said is not None
    assert f"the head of Ray at {head.address} refuses the token: secret_file must be the same" in said
    assert b"Bearer a1b2" in head.asked


def test_a_head_with_the_same_versions_takes_the_node(heads: list[Head], tmp_path: Path) -> None:
    head = a_head(heads, versions(version("ray"), platform.python_version()))
    assert mismatch(head.address, with_token(tmp_path)) is None
    assert refusal(head.address) is None


@pytest.mark.parametrize(
    ("ray", "python"), [("1.0.0", platform.python_version()), (version("ray"), "2.7.18")]
)
def test_other_versions_are_named(heads: list[Head], ray: str, python: str) -> None:
    said = mismatch(a_head(heads, versions(ray, python)).address, {})
    assert said is not None
    assert f"runs Ray {ray} on Python {python}, this machine Ray {version('ray')}" in said


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", versions("", "")[:-40]])
def test_an_answer_that_is_not_understood_says_nothing(heads: list[Head], answer: bytes) -> None:
    assert mismatch(a_head(heads, answer, hangs_up=True).address, {}) is None


def test_a_head_that_is_away_does_not_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    assert not is_reached(address)
    assert refusal(address) == f"the head of Ray at {address} does not answer"


def test_the_token_is_the_one_that_ray_would_show(tmp_path: Path) -> None:
    assert token_of({}) == ""
    assert token_of(with_token(tmp_path)) == "a1b2"
    assert token_of({**with_token(tmp_path), "RAY_AUTH_TOKEN": "c3"}) == "c3"
    assert token_of({"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": "/nowhere"}) == ""
