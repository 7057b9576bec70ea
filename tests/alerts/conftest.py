"""A receiver of alerts over HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import pytest


class Received(NamedTuple):
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)


class Receiver:
    """A real HTTP server that keeps what it was sent."""

    def __init__(self) -> None:
        self.requests: list[Received] = []
        self.answers: list[int] = []
        """Status codes to answer with, one after the other; then 204."""
        self.may_answer = threading.Event()
        self.may_answer.set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.requests.append(Received(self.path, headers, body))
                receiver.may_answer.wait(30)
                status = receiver.answers.pop(0) if receiver.answers else 204
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", f"{receiver.url}/elsewhere")
                self.end_headers()

            def log_message(self, *_args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    @property
    def only(self) -> Received:
        (request,) = self.requests
        return request


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver that answers, until the end of the test."""
    receiver = Receiver()
    thread = threading.Thread(target=receiver.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield receiver
    receiver.may_answer.set()
    receiver.server.shutdown()
    receiver.server.server_close()
    thread.join()
