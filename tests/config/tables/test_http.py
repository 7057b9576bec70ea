"""The table [http]: off unless it is there, and refused where it would not be safe (F29)."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.config.files import good, reason

from rekindle.actors.gateways.settings.http_settings import Address, HttpSettings
from rekindle.cli.config.config_text import as_text

WORKER = '[worker.a]\ncommand = ["x"]\n'


def test_without_the_table_nothing_is_served() -> None:
    assert good(WORKER).http is None


def test_the_table_alone_turns_it_on_for_this_machine() -> None:
    assert good("[http]\n" + WORKER).http == HttpSettings(listen=Address("127.0.0.1", 8377))


def test_paths_are_meant_from_the_files_folder() -> None:
    text = '[http]\nlisten = "0.0.0.0:443"\nhosts = ["a.example"]\ntls_cert = "c.pem"\ntls_key = "/k.pem"\n'
    http = good(text + WORKER).http
    assert http is not None
    assert (http.tls_cert, http.tls_key) == (Path("/srv/app/c.pem"), Path("/k.pem"))
    assert good(as_text(good(text + WORKER))).http == http


@pytest.mark.parametrize(
    ("line", "key", "said"),
    [
        ('listen = "0.0.0.0:80"\nhosts = ["a.example"]', "http.listen", "reachable from other machines"),
        ('listen = "example.org:80"', "http.listen", "must have an IP address"),
        ('listen = "80"', "http.listen", "must be ADDRESS:PORT"),
        ('listen = "0.0.0.0:80"\nbehind_proxy = true', "http.hosts", "every address"),
        ('tls_cert = "c.pem"', "http.tls_key", "belong together"),
        ('tls_cert = ""\ntls_key = "k"', "http.tls_cert", "must be a path"),
        ("max_clients = 0", "http.max_clients", "between 1 and 1024"),
        ('hosts = ["a b"]', "http.hosts", "is not a host name"),
    ],
)
def test_what_would_not_be_safe_is_refused_before_anything_starts(line: str, key: str, said: str) -> None:
    assert said in reason(f"[http]\n{line}\n{WORKER}", key)
