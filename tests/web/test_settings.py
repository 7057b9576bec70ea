"""Pure: what an address is, and which settings are safe."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rekindle.actors.gateways.settings.http_settings import Address, HttpSettings

DEFAULT = HttpSettings()
TLS = replace(DEFAULT, tls_cert=Path("c"), tls_key=Path("k"))


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8377", Address("127.0.0.1", 8377)),
        ("localhost:80", Address("127.0.0.1", 80)),
        ("[::1]:8377", Address("::1", 8377)),
        ("0.0.0.0:0", Address("0.0.0.0", 0)),
    ],
)
def test_an_address_is_read(text: str, address: Address) -> None:
    assert Address.parse(text) == address


@pytest.mark.parametrize(
    "text",
    ["", "8377", ":8377", "127.0.0.1", "example.org:80", "127.0.0.1:99999", "::1:80", "1.2.3:80", "a b:1"],
)
def test_an_invalid_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must"):
        Address.parse(text)


@pytest.mark.parametrize(
    ("settings", "fields"),
    [
        (DEFAULT, []),
        (replace(DEFAULT, listen=Address("::1", 1)), []),
        (replace(DEFAULT, listen=Address("192.0.2.1", 1)), ["listen"]),
        (replace(DEFAULT, listen=Address("0.0.0.0", 1)), ["listen", "hosts"]),
        (replace(TLS, listen=Address("0.0.0.0", 1), hosts=("a.example",)), []),
        (replace(DEFAULT, listen=Address("192.0.2.1", 1), behind_proxy=True), []),
        (replace(DEFAULT, tls_cert=Path("c")), ["tls_key"]),
        (replace(DEFAULT, tls_key=Path("k")), ["tls_cert"]),
        (replace(DEFAULT, max_clients=0), ["max_clients"]),
        (replace(DEFAULT, hosts=("a b", "*", "ok.example:8443", "[::1]:80")), ["hosts", "hosts"]),
    ],
)
def test_what_is_unsafe_is_objected_to(settings: HttpSettings, fields: list[str]) -> None:
    assert [field for field, _ in settings.objections()] == fields


def test_on_this_machine_it_is_called_by_the_names_of_this_machine() -> None:
    assert DEFAULT.allowed_hosts(8377) == {"127.0.0.1:8377", "localhost:8377", "[::1]:8377"}
    assert "localhost" in DEFAULT.allowed_hosts(80)


def test_elsewhere_it_is_called_by_its_address_and_the_names_that_were_given() -> None:
    settings = replace(DEFAULT, listen=Address("192.0.2.1", 1), hosts=("Status.example", "b.example:1"))
    assert settings.allowed_hosts(1) == {
        "192.0.2.1:1",
        "status.example",
        "status.example:1",
        "b.example:1",
    }


@pytest.mark.parametrize(
    ("settings", "url"),
    [
        (DEFAULT, "http://127.0.0.1:8377/"),
        (replace(DEFAULT, listen=Address("::1", 1)), "http://[::1]:1/"),
        (replace(DEFAULT, behind_proxy=True, hosts=("a.example",)), "https://a.example/"),
        (replace(TLS, listen=Address("0.0.0.0", 9), hosts=("a.example",)), "https://a.example:9/"),
    ],
)
def test_its_address_is_the_one_that_browsers_use(settings: HttpSettings, url: str) -> None:
    assert settings.url == url
