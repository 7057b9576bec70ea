"""The tables `[socket.NAME]` and the key `sockets`: their meaning, their refusals, and how they are shown."""

from __future__ import annotations

import pytest
from tests.config.files import good, reason, refused, warned

from rekindle.actors import SocketSpec
from rekindle.cli.config.config_text import as_text

WEB = """
[socket.web]
listen = "127.0.0.1:8000"
[worker.web]
command = ["web", "--fd", "{socket.web}"]
sockets = ["web"]
"""


def test_every_key_can_be_set_and_is_shown_as_it_was_set() -> None:
    config = good(
        """
        [socket.app]
        listen = "unix:run/app.sock"
        backlog = 100
        mode = "600"
        owner = "www:www"
        [socket.web]
        listen = "[::1]:8000"
        reuse_port = true
        [worker.web]
        command = ["web", "{socket.web}"]
        sockets = ["web", "app"]
        """
    )
    assert config.groups[0].template.sockets == (
        SocketSpec("web", "[::1]:8000", reuse_port=True),
        SocketSpec("app", "unix:/srv/app/run/app.sock", backlog=100, mode="600", owner="www:www"),
    )
    assert good(as_text(config)).specs() == config.specs()


def test_the_defaults_may_name_the_sockets_of_every_worker() -> None:
    config = good(
        '[defaults]\nsockets = ["web"]\n[socket.web]\nlisten = "localhost:1"\n[worker.a]\ncommand = ["a"]\n'
    )
    assert [each.name for each in config.specs()[0].sockets] == ["web"]


@pytest.mark.parametrize(
    ("listen", "why"),
    [
        ("", "must be ADDRESS:PORT"),
        ("8000", "must be ADDRESS:PORT"),
        ("example.org:80", "must have an IP address or localhost before the port"),
        ("127.0.0.1:65536", "must have a port up to 65535"),
        ("unix:", "must have a path after unix:"),
        ("unix:" + "a" * 108, "has a path of more than 107 bytes"),
    ],
)
def test_a_socket_needs_an_address(listen: str, why: str) -> None:
    assert why in reason(WEB.replace("127.0.0.1:8000", listen), "socket.web.listen")


@pytest.mark.parametrize(
    ("setting", "key", "why"),
    [
        ('mode = "600"', "mode", "is for a unix socket only"),
        ('owner = "www"', "owner", "is for a unix socket only"),
        ("backlog = 0", "backlog", "must be between 1 and 65535"),
    ],
)
def test_a_setting_of_the_other_kind_of_socket_is_refused(setting: str, key: str, why: str) -> None:
    assert reason(WEB.replace("[worker", f"{setting}\n[worker"), f"socket.web.{key}") == why


def test_two_sockets_with_one_address_are_refused() -> None:
    text = WEB + '[socket.other]\nlisten = "localhost:8000"\n'
    assert reason(text, "socket.other.listen") == "listens on localhost:8000, as the socket 'web' does"
    both = text.replace("8000", "8000", 1).replace(':8000"', ':8000"\nreuse_port = true')
    assert good(both).specs()[0].sockets[0].reuse_port


def test_a_name_that_is_not_a_socket_is_refused_with_the_nearest_one() -> None:
    assert refused(WEB.replace('sockets = ["web"]', 'sockets = ["wbe"]')) == [
        "workers.toml:6: worker.web.sockets: 'wbe' is not a socket of this file; did you mean 'web'?"
    ]


def test_a_placeholder_without_its_socket_is_refused() -> None:
    why = reason(WEB.replace('sockets = ["web"]', ""), "worker.web.command")
    assert why == 'has {socket.web}, and the worker has no sockets = ["web"]'
    why = reason(WEB.replace('"{socket.web}"', '"{socket.app}"'), "worker.web.command")
    assert why == "has {socket.app}, which is not among its sockets"


def test_a_socket_that_no_worker_names_is_a_warning() -> None:
    text = WEB + '[socket.other]\nlisten = "localhost:9000"\n'
    assert warned(text) == [
        "workers.toml:7: warning: socket.other: has no effect: no worker names it in sockets"
    ]
