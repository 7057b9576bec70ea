"""What a probe may ask, and which answers are good."""

from __future__ import annotations

from typing import Any

import pytest

from rekindle.actors.errors import SpecError
from rekindle.actors.spec.probe import CommandProbe, HttpProbe, TcpProbe

URL = "http://localhost:8080/health"


def reasons(kind: Any, *arguments: object, **settings: object) -> list[str]:
    """Why a probe is refused."""
    with pytest.raises(SpecError) as caught:
        kind(*arguments, **settings)
    return [f"{each.field}: {each.reason}" for each in caught.value.problems]


@pytest.mark.parametrize(
    ("code", "good"), [(199, False), (200, True), (302, True), (399, True), (400, False), (503, False)]
)
def test_by_default_every_code_from_200_to_399_is_a_good_answer(code: int, good: bool) -> None:
    assert HttpProbe(URL).accepts(code) is good


def test_codes_are_numbers_and_ranges() -> None:
    probe = HttpProbe(URL, codes=(204, "401-403"))
    assert [code for code in range(100, 600) if probe.accepts(code)] == [204, 401, 402, 403]


@pytest.mark.parametrize("code", [99, 600, "2xx", "399-200", "200-", "-200", "", "200,204"])
def test_a_code_that_does_not_exist_is_refused(code: int | str) -> None:
    (reason,) = reasons(HttpProbe, URL, codes=(code,))
    assert 'a range such as "200-399"' in reason


def test_a_probe_without_any_good_answer_is_refused() -> None:
    assert reasons(HttpProbe, URL, codes=()) == ["codes: must name at least one status code"]


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("localhost:8080/health", "must be an http:// or https:// address"),
        ("ftp://localhost/", "must be an http:// or https:// address"),
        ("http:///health", "must be an http:// or https:// address"),
        ("http://localhost:0/", "must have a port above 0"),
        ("http://localhost:99999/", "is not an address: Port out of range 0-65535"),
        ("http://local host/", "must not contain blanks or control characters"),
        ("http://localhost/\r\nX: y", "must not contain blanks or control characters"),
        ("http://me:pw@localhost/", 'use headers = { Authorization = "..." }'),
    ],
)
def test_an_address_that_cannot_be_asked_is_refused_with_the_way_out(url: str, reason: str) -> None:
    (refusal,) = reasons(HttpProbe, url)
    assert reason in refusal


@pytest.mark.parametrize(
    ("name", "value"), [("a b", "x"), ("", "x"), ("X", "a\r\nB: c"), ("Content-Length", "5"), ("X", "\u20ac")]
)
def test_a_header_that_would_break_the_request_is_refused(name: str, value: str) -> None:
    assert len(reasons(HttpProbe, URL, headers={name: value})) == 1


@pytest.mark.parametrize("address", ["localhost:80", "127.0.0.1:1", "[::1]:65535", "db.internal:5432"])
def test_a_tcp_address_has_a_host_and_a_port(address: str) -> None:
    assert TcpProbe(address).address == address


@pytest.mark.parametrize(
    "address", ["localhost", ":80", "localhost:", "localhost:0", "localhost:65536", "::1:80"]
)
def test_a_tcp_address_without_host_or_port_is_refused(address: str) -> None:
    (reason,) = reasons(TcpProbe, address)
    assert 'such as "localhost:8080"' in reason


def test_a_url_where_an_address_belongs_is_told_apart() -> None:
    (reason,) = reasons(TcpProbe, "http://localhost:80")
    assert reason.endswith("for an address with a scheme use http")


@pytest.mark.parametrize("argv", [(), ("",), ("a\0b",), "curl localhost"])
def test_a_command_that_names_no_program_is_refused(argv: object) -> None:
    assert len(reasons(CommandProbe, argv)) == 1
