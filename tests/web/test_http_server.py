"""What the gateway refuses to be, and what it leaves: F29."""

from __future__ import annotations

import os
import socket
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from tests.control.operator_double import OperatorDouble
from tests.processes.conftest import Run
from tests.web.conftest import ANY_PORT, Serve

from rekindle.actors.gateways.gateway_errors import GatewayError, UnsafePathError
from rekindle.actors.gateways.http import TOKEN_FILES, Address, ClientRole, HttpServer, HttpSettings
from rekindle.actors.gateways.http.login_sessions import IDLE_S, LIFE_S, MOST_SESSIONS, Sessions
from rekindle.actors.gateways.http.session_file import SessionFile
from rekindle.actors.gateways.http.tokens import load_tokens

EVERYWHERE = Address("0.0.0.0", 0)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "2001:db8::1"])
def test_it_is_not_in_the_open_without_tls(run: Run, tmp_path: Path, host: str) -> None:
    """F29: nothing is bound, and the reason says what would do."""
    server = HttpServer(OperatorDouble(run()), tmp_path / "state", HttpSettings(listen=Address(host, 0)))
    with pytest.raises(GatewayError, match=r"reachable from other machines.*tls_cert.*behind_proxy"):
        server.start()


def test_it_listens_on_the_loopback_address_by_default(serve: Serve) -> None:
    web = serve()
    assert web.server.url.startswith("http://127.0.0.1:")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", web.port), timeout=5)


def test_a_port_that_is_taken_is_named(serve: Serve, tmp_path: Path) -> None:
    web = serve()
    second = HttpServer(
        web.operator, tmp_path / "second", HttpSettings(listen=Address("127.0.0.1", web.port))
    )
    with pytest.raises(GatewayError, match=rf"127\.0\.0\.1:{web.port}: Address already in use"):
        second.start()


def test_an_invalid_certificate_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "cert.pem").write_text("no certificate")
    settings = replace(ANY_PORT, tls_cert=tmp_path / "cert.pem", tls_key=tmp_path / "cert.pem")
    with pytest.raises(GatewayError, match="certificate"):
        HttpServer(OperatorDouble(run()), tmp_path / "state", settings).start()


def test_tokens_have_256_bits_and_only_we_can_read_them(tmp_path: Path) -> None:
    tokens = load_tokens(tmp_path / "state")
    assert tokens.fresh
    assert len({tokens.viewer, tokens.operator}) == 2
    for role, name in TOKEN_FILES.items():
        path = tmp_path / "state" / name
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert path.read_text().strip() == tokens.of(role)
        assert len(tokens.of(role)) == 43
    assert tokens.viewer not in repr(tokens)


def test_tokens_stay_the_same_until_their_file_is_removed(tmp_path: Path) -> None:
    first = load_tokens(tmp_path)
    again = load_tokens(tmp_path)
    assert (again.viewer, again.operator, again.fresh) == (first.viewer, first.operator, False)
    (tmp_path / TOKEN_FILES[ClientRole.VIEWER]).unlink()
    third = load_tokens(tmp_path)
    assert (third.viewer != first.viewer, third.operator == first.operator) == (True, True)


def test_a_replaced_token_ends_every_session(tmp_path: Path) -> None:
    first = SessionFile(tmp_path, load_tokens(tmp_path))
    Sessions(first.load(), lambda: 0.0, first.save).begin(ClientRole.OPERATOR)
    assert len(SessionFile(tmp_path, load_tokens(tmp_path)).load()) == 1
    (tmp_path / TOKEN_FILES[ClientRole.VIEWER]).unlink()
    assert SessionFile(tmp_path, load_tokens(tmp_path)).load() == []


def test_tokens_that_others_can_read_are_refused(tmp_path: Path) -> None:
    load_tokens(tmp_path)
    (tmp_path / TOKEN_FILES[ClientRole.OPERATOR]).chmod(0o644)
    with pytest.raises(UnsafePathError, match="is readable by other users"):
        load_tokens(tmp_path)


def test_a_token_behind_a_symbolic_link_is_refused(tmp_path: Path) -> None:
    """F29."""
    load_tokens(tmp_path)
    file = tmp_path / TOKEN_FILES[ClientRole.VIEWER]
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnsafePathError):
        load_tokens(tmp_path)


@pytest.mark.parametrize("text", ["", "short", "x" * 2000, "ünïcode" * 10])
def test_a_file_without_a_token_is_refused(tmp_path: Path, text: str) -> None:
    load_tokens(tmp_path)
    (tmp_path / TOKEN_FILES[ClientRole.VIEWER]).write_text(text)
    with pytest.raises(GatewayError, match="does not hold a token"):
        load_tokens(tmp_path)


def test_a_state_directory_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    """F29."""
    directory = tmp_path / "open"
    directory.mkdir()
    os.chmod(directory, 0o777)
    with pytest.raises(UnsafePathError):
        load_tokens(directory)


def test_a_session_ends_after_its_last_use_and_after_its_longest_life() -> None:
    now = [1000.0]
    sessions = Sessions((), lambda: now[0], lambda _: None)
    name = sessions.begin(ClientRole.VIEWER)
    for _ in range(int(LIFE_S / IDLE_S) + 2):
        now[0] += IDLE_S - 1
        if now[0] - 1000.0 < LIFE_S:
            assert sessions.role_of(name) is ClientRole.VIEWER
    assert sessions.role_of(name) is None
    idle = sessions.begin(ClientRole.OPERATOR)
    now[0] += IDLE_S
    assert sessions.role_of(idle) is None


def test_the_session_that_was_used_least_recently_makes_room() -> None:
    sessions = Sessions((), lambda: 0.0, lambda _: None)
    names = [sessions.begin(ClientRole.VIEWER) for _ in range(MOST_SESSIONS)]
    assert sessions.role_of(names[0]) is ClientRole.VIEWER
    sessions.begin(ClientRole.VIEWER)
    assert (sessions.role_of(names[0]), sessions.role_of(names[1])) == (ClientRole.VIEWER, None)


def test_a_client_that_may_only_look_cannot_sign_out_an_operator() -> None:
    sessions = Sessions((), lambda: 0.0, lambda _: None)
    operator = sessions.begin(ClientRole.OPERATOR)
    for _ in range(MOST_SESSIONS + 1):
        sessions.begin(ClientRole.VIEWER)
    assert sessions.role_of(operator) is ClientRole.OPERATOR


def test_a_fifo_in_place_of_a_token_does_not_hang_the_start(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / TOKEN_FILES[ClientRole.VIEWER], 0o600)
    with pytest.raises(UnsafePathError, match="is not a file"):
        load_tokens(tmp_path)


def test_a_state_directory_below_one_that_every_user_may_write_to_is_refused(tmp_path: Path) -> None:
    below = tmp_path / "open" / "state"
    below.mkdir(0o700, parents=True)
    below.parent.chmod(0o777)
    with pytest.raises(UnsafePathError, match="is writable by every user"):
        load_tokens(below)
    below.parent.chmod(0o1777)  # as /tmp: others cannot replace what is ours
    load_tokens(below)
