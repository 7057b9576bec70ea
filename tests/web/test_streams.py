"""Following the events over TCP: who may, how many, and that no client delays the end (F27)."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from typing import Any

from tests.processes.waiting import PATIENCE_S, eventually
from tests.web.conftest import ANY_PORT, WORKER, Serve, Web

from rekindle.actors.messages import ActorReplaced

EVENTS = "/api/v1/events"
FEW = replace(ANY_PORT, max_clients=3)


class Following:
    """A client that follows, and reads on command."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._text = ""

    def until(self, wanted: str) -> str:
        """Everything up to a text; fails if it does not come."""
        deadline = time.monotonic() + PATIENCE_S
        while wanted not in self._text:
            self._connection.settimeout(max(0.01, deadline - time.monotonic()))
            received = self._connection.recv(65_536)
            assert received, self._text
            self._text += received.decode()
        return self._text

    def events(self) -> list[dict[str, Any]]:
        """The data of what has come."""
        lines = [line for line in self._text.splitlines() if line.startswith("data: ")]
        return [json.loads(line.removeprefix("data: ")) for line in lines]


@contextmanager
def following(web: Web, path: str = EVENTS, **headers: str) -> Iterator[Following]:
    """A client that follows over a connection of its own."""
    lines = [f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{web.port}"]
    lines += [f"{name}: {value}" for name, value in {**web.bearer(), **headers}.items()]
    with closing(socket.create_connection(("127.0.0.1", web.port), timeout=PATIENCE_S)) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        yield Following(connection)


def test_a_death_is_streamed_over_tcp(serve: Serve) -> None:
    web = serve()
    pid = web.system.wait_until(WORKER, lambda worker: worker.pid is not None, timeout_s=20).pid
    assert pid is not None
    with following(web) as client:
        client.until("event: connected")
        os.kill(pid, signal.SIGKILL)
        client.until("event: worker_died")
        died = next(event for event in client.events() if event.get("type") == "worker_died")
        assert (died["component_id"], died["signal"]) == (WORKER, 9)


def test_no_client_follows_without_a_token(web: Web) -> None:
    assert web.ask("GET", EVENTS).status == 401
    assert web.ask("GET", EVENTS, web.session() | {"Sec-Fetch-Site": "cross-site"}).status == 403


def test_what_makes_no_sense_is_refused_with_a_problem(web: Web) -> None:
    for path, headers in [
        (f"{EVENTS}?topics=weather", {}),
        (f"{EVENTS}?topic=event:*", {}),
        (f"{EVENTS}?since=-1", {}),
        (EVENTS, {"Last-Event-ID": "soon"}),
    ]:
        answer = web.ask("GET", path, web.bearer() | headers)
        assert 400 <= answer.status < 500
        assert set(answer.document) == {"error", "message"}


def test_one_client_too_many_gets_503_and_the_others_are_served(serve: Serve) -> None:
    """F27, with three places instead of 64."""
    web = serve(settings=FEW)
    with ExitStack() as stack:
        clients = [stack.enter_context(following(web)) for _ in range(FEW.max_clients)]
        for client in clients:
            client.until("event: connected")
        refused = web.ask("GET", EVENTS, web.bearer())
        assert (refused.status, refused.error) == (503, "busy")
        assert web.ask("GET", "/api/v1/workers", web.bearer()).status == 200
    # Those three have gone, and their places are free again.
    assert eventually(lambda: _status(web) == 200)


def _status(web: Web) -> int:
    with following(web) as client:
        return int(client.until("\r\n").split()[1])


def test_clients_that_do_not_read_do_not_hold_up_the_end(serve: Serve) -> None:
    """F27: stopped within three seconds."""
    web = serve(settings=FEW)
    with ExitStack() as stack:
        for _ in range(FEW.max_clients):
            stack.enter_context(following(web)).until("event: connected")
        began = time.monotonic()
        web.server.stop()
        assert time.monotonic() - began < 3.0


def test_a_client_that_stops_reading_delays_neither_the_others_nor_the_end(serve: Serve) -> None:
    """F27, over TCP, with a client whose buffers are full."""
    web = serve()
    with closing(socket.socket()) as blocked, following(web) as reader:
        blocked.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        blocked.connect(("127.0.0.1", web.port))
        token = web.bearer()["Authorization"]
        host = f"127.0.0.1:{web.port}"
        blocked.sendall(f"GET {EVENTS} HTTP/1.1\r\nHost: {host}\r\nAuthorization: {token}\r\n\r\n".encode())
        reader.until("event: connected")
        for number in range(100):
            web.system.announce(ActorReplaced(f"number {number}.", "x" * 50_000))
        heard = reader.until('"number 99."')
        assert re.findall(r'"number (\d+)\."', heard) == [str(number) for number in range(100)]
        began = time.monotonic()
        web.server.stop()
        assert time.monotonic() - began < 3.5
