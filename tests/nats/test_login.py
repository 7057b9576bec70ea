"""As whom a gateway connects, and that no secret gets anywhere else."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest
from tests.nats.conftest import Gateways
from tests.nats.credentials import account, certificate
from tests.nats.scripted_events import ScriptedEvents
from tests.processes.waiting import eventually
from tests.services import NatsServices

from rekindle.actors.gateways.gateway_errors import GatewayError, MissingExtraError, UnsafePathError
from rekindle.actors.gateways.nats import Login, Tls

SECRET = "correct horse battery staple"
USERS = f'authorization {{ user: ada, password: "{SECRET}" }}'
TOKEN = f'authorization {{ token: "{SECRET}" }}'


def secret_file(directory: Path, text: str = SECRET, mode: int = 0o600) -> str:
    path = directory / "secret"
    path.write_text(text + "\n")
    path.chmod(mode)
    return str(path)


def delivers(gateways: Gateways, log: ScriptedEvents, url: str, **settings: object) -> bool:
    gateway = gateways(log, url, **settings)
    log.write_many(1)
    return eventually(lambda: gateway.state().delivered == 1)


def test_a_password_comes_from_its_file(
    log: ScriptedEvents, nats_services: NatsServices, gateways: Gateways, tmp_path: Path
) -> None:
    login = Login(user="ada", password_file=secret_file(tmp_path))
    assert delivers(gateways, log, nats_services(extra=USERS).url, login=login)


def test_a_token_comes_from_its_file(
    log: ScriptedEvents, nats_services: NatsServices, gateways: Gateways, tmp_path: Path
) -> None:
    login = Login(token_file=secret_file(tmp_path))
    assert delivers(gateways, log, nats_services(extra=TOKEN).url, login=login)


def test_a_creds_file_signs_what_the_server_asks(
    log: ScriptedEvents, nats_services: NatsServices, gateways: Gateways, tmp_path: Path
) -> None:
    config, credentials = account(tmp_path)
    service = nats_services(streams=False, extra=config)
    assert delivers(gateways, log, service.url, login=Login(credentials=str(credentials)))


def test_a_wrong_password_is_reported_without_the_password(
    log: ScriptedEvents, nats_services: NatsServices, gateways: Gateways, tmp_path: Path, logs: list[str]
) -> None:
    login = Login(user="ada", password_file=secret_file(tmp_path, "hunter2"))
    gateway = gateways(log, nats_services(extra=USERS), login=login)
    assert eventually(lambda: "uthorization" in gateway.state().detail)
    assert "hunter2" not in "".join([*logs, repr(log.announced), repr(gateway.state()), repr(login)])


@pytest.mark.parametrize("field", ["credentials", "token_file"])
def test_a_secret_that_others_can_read_is_refused(
    log: ScriptedEvents, gateways: Gateways, tmp_path: Path, field: str
) -> None:
    path = secret_file(tmp_path, mode=0o640)
    with pytest.raises(UnsafePathError, match="chmod 600"):
        gateways(log, "nats://127.0.0.1:1", login=Login(**{field: path}))


def test_a_missing_secret_is_reported_before_anything_starts(
    log: ScriptedEvents, gateways: Gateways, tmp_path: Path
) -> None:
    with pytest.raises(GatewayError, match="No such file"):
        gateways(log, "nats://127.0.0.1:1", login=Login(token_file=str(tmp_path / "nothing")))


def test_an_encrypted_server_is_recognised_by_its_certificate(
    log: ScriptedEvents, nats_services: NatsServices, gateways: Gateways, tmp_path: Path
) -> None:
    cert, key = certificate(tmp_path)
    service = nats_services(extra=f'tls {{ cert_file: "{cert}", key_file: "{key}" }}')
    assert delivers(gateways, log, service.url, tls=Tls(ca=str(cert)))
    stranger = gateways(log, service, tls=Tls(required=True))
    assert eventually(lambda: "certificate" in stranger.state().detail.lower())


def test_a_password_is_not_sent_to_a_server_that_does_not_encrypt(
    log: ScriptedEvents, gateways: Gateways, tmp_path: Path
) -> None:
    login = Login(user="ada", password_file=secret_file(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        gateway = gateways(log, f"nats://127.0.0.1:{port}", login=login, tls=Tls(required=True))
        connection, _ = server.accept()
        with connection:
            connection.settimeout(10)
            connection.sendall(b'INFO {"auth_required": true, "max_payload": 1000}\r\n')
            heard = b"".join(iter(lambda: connection.recv(1000), b""))
        assert eventually(lambda: "does not offer TLS" in gateway.state().detail)
    assert SECRET.encode() not in heard


def test_a_missing_extra_is_named_with_what_installs_it(
    log: ScriptedEvents, gateways: Gateways, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "nats", None)
    monkeypatch.setitem(sys.modules, "nats.aio.client", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'rekindle-supervisor\[nats\]'"):
        gateways(log, "nats://127.0.0.1:1")
