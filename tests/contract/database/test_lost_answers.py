"""A server that commits, and whose answer is lost: the batch is repeated and changes nothing twice."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest
from sqlalchemy import URL, make_url
from tests.contract.records import NOW, TAG, death, event, known

from rekindle.actors.errors import StoreUnavailableError
from rekindle.actors.facts.audit_entry import AuditEntry, AuditResult
from rekindle.actors.facts.records import Record, RestartReset
from rekindle.persistence import open_store

ORDER = AuditEntry(
    at_wall_ms=NOW,
    gateway="control",
    uid=0,
    pid=None,
    claimed_user=None,
    action="reset",
    target=TAG,
    detail="",
    result=AuditResult.DONE,
    reason="",
)


class LossyProxy:
    """Stands between a client and PostgreSQL; once it is told to, it loses the answer to a COMMIT."""

    def __init__(self, url: URL) -> None:
        host = url.query.get("host") or url.host or "localhost"
        self._server = (str(host), int(str(url.query.get("port") or url.port or 5432)))
        self.loses_answer = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server, lost = self._connected(), threading.Event()
                threading.Thread(target=self._upstream, args=(client, server, lost), daemon=True).start()
                threading.Thread(target=self._downstream, args=(server, client, lost), daemon=True).start()

    def _connected(self) -> socket.socket:
        host, port = self._server
        if not host.startswith("/"):
            return socket.create_connection((host, port))
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{host}/.s.PGSQL.{port}")
        return server

    def _upstream(self, client: socket.socket, server: socket.socket, lost: threading.Event) -> None:
        with suppress(OSError):
            while sent := client.recv(65536):
                if b"COMMIT" in sent and self.loses_answer.is_set():
                    self.loses_answer.clear()
                    lost.set()
                server.sendall(sent)
        with suppress(OSError):
            server.shutdown(socket.SHUT_WR)

    def _downstream(self, server: socket.socket, client: socket.socket, lost: threading.Event) -> None:
        with suppress(OSError):
            while (answered := server.recv(65536)) and not lost.is_set():
                client.sendall(answered)
            client.shutdown(socket.SHUT_RDWR)
        for each in (client, server):
            with suppress(OSError):
                each.close()


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[LossyProxy]:
    """A proxy to an empty database."""
    made = LossyProxy(make_url(postgres_url))
    yield made
    made.close()


def test_a_commit_whose_answer_is_lost_is_repeated_without_counting_or_auditing_twice(
    postgres_url: str, proxy: LossyProxy
) -> None:
    """The reset was repeated, and the death behind it was known by then: the count was lost."""
    through = make_url(postgres_url).set(host="127.0.0.1", port=proxy.port, query={})
    store = open_store(through.render_as_string(hide_password=False))
    store.commit([death(1)])
    batch: list[Record] = [ORDER, RestartReset(TAG, NOW + 1), death(2, died_at_wall_ms=NOW + 2), event(1)]
    proxy.loses_answer.set()
    with pytest.raises(StoreUnavailableError):
        store.commit(batch)
    assert not proxy.loses_answer.is_set()
    store.commit([*batch, death(3, died_at_wall_ms=NOW + 3)])
    assert (known(store).restart_count, len(store.audit()), len(store.deaths(TAG))) == (2, 1, 3)
    store.close()
