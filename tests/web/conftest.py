"""A real system behind a real HTTP gateway, and requests as scripts and browsers send them."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPMessage
from pathlib import Path
from typing import Any, Protocol

import pytest
from tests.control.operator_double import OperatorDouble
from tests.processes.conftest import Run, database, marks, no_traces, run
from tests.processes.policies import sleeper

from rekindle.actors import System, WorkerSpec
from rekindle.actors.gateways.http import Address, ClientRole, HttpServer, HttpSettings
from rekindle.persistence import MemoryStore

__all__ = ["database", "marks", "no_traces", "run"]

WORKER = "worker:tag:0"
ANY_PORT = HttpSettings(listen=Address("127.0.0.1", 0))


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
    ]
    command += ["-keyout", str(key), "-out", str(cert), "-days", "2", "-subj", "/CN=localhost"]
    subprocess.run([*command, "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    return cert, key


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: HTTPMessage
    body: bytes

    @property
    def document(self) -> Any:
        """The JSON in it."""
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """The problem's word."""
        return str(self.document["error"])


@dataclass(frozen=True)
class Web:
    """A system behind an HTTP gateway."""

    system: System
    operator: OperatorDouble
    server: HttpServer

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.server.url.rpartition(":")[2].strip("/"))

    def bearer(self, role: ClientRole = ClientRole.VIEWER) -> dict[str, str]:
        """What a script sends to be known."""
        return {"Authorization": f"Bearer {self.server.tokens.of(role)}"}

    def ask(
        self, method: str, path: str, headers: dict[str, str] | None = None, body: object = None
    ) -> Answer:
        """One request, with exactly these headers and a Host."""
        given = dict(headers or {})
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        if data is not None:
            given.setdefault("Content-Type", "application/json")
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=20)) as connection:
            connection.request(method, path, body=data, headers=given)
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())

    def session(self, role: ClientRole = ClientRole.VIEWER) -> dict[str, str]:
        """What the dashboard sends once it has shown a token."""
        answer = self.ask("POST", "/session", self.page(), {"token": self.server.tokens.of(role)})
        assert answer.status == 200, answer.body
        return {"Authorization": f"Bearer {answer.document['session']}"}

    def page(self) -> dict[str, str]:
        """What a browser adds to what our own page sends."""
        return {"Origin": f"http://127.0.0.1:{self.port}", "Sec-Fetch-Site": "same-origin"}


class Serve(Protocol):
    """Starts a system with these workers behind a gateway of its own."""

    def __call__(self, *specs: WorkerSpec, settings: HttpSettings = ANY_PORT) -> Web: ...


@pytest.fixture
def serve(run: Run, tmp_path: Path) -> Iterator[Serve]:
    """Starts systems behind gateways, and leaves no trace of them."""
    with ExitStack() as stack:

        def serve(*specs: WorkerSpec, settings: HttpSettings = ANY_PORT) -> Web:
            system = run(*(specs or (sleeper(WORKER),)))
            operator = OperatorDouble(system)
            server = stack.enter_context(HttpServer(operator, tmp_path / "state", settings))
            return Web(system, operator, server)

        yield serve


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """One worker behind a gateway, for the tests of a module that leave it as it is."""
    with System([sleeper(WORKER)], store=MemoryStore()) as system:
        system.wait_until(WORKER, lambda worker: worker.pid is not None, timeout_s=20)
        operator = OperatorDouble(system)
        with HttpServer(operator, tmp_path_factory.mktemp("web") / "state", ANY_PORT) as server:
            yield Web(system, operator, server)
