"""The table `[otel]`: where traces are sent."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.config.files import good, refused

from rekindle.actors.gateways.settings.otel_settings import DEFAULT_ENDPOINT, OtelSettings, headers_of


def test_the_table_alone_turns_the_gateway_on() -> None:
    assert good("[otel]").otel == OtelSettings(endpoint=DEFAULT_ENDPOINT)


def test_without_the_table_it_is_off() -> None:
    assert good("").otel is None


def test_the_file_of_the_headers_is_relative_to_the_file() -> None:
    found = good('[otel]\nheaders_file = "otel.headers"\nsample = 0.1').otel
    assert found is not None
    assert (found.headers_file, found.sample) == (Path("/srv/app/otel.headers"), 0.1)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('endpoint = "collector:4318"', "must be an http:// or https:// address"),
        ('endpoint = "http://collector:4318"', "must have the path of traces"),
        ('endpoint = "http://ada:pass@collector/v1/traces"', "must not contain a user or password"),
        ('endpoint = "https://collector/v1/traces?api-key=abc"', "put a key into headers_file"),
        ('endpoint = "https://collector/v1/traces#abc"', "put a key into headers_file"),
        (
            'endpoint = "http://collector/v1/traces"\nheaders_file = "otel.headers"',
            "would be sent to the endpoint unencrypted",
        ),
        ('service = " "', "must not be empty"),
        ("sample = 1.5", "must be between 0 and 1"),
        ("timeout_s = 0", "must be above 0"),
        ("sampel = 1", "is not a known key"),
    ],
)
def test_a_setting_that_is_wrong_is_named_with_the_reason(line: str, reason: str) -> None:
    (problem,) = refused(f"[otel]\n{line}")
    assert "otel" in problem
    assert reason in problem


@pytest.mark.parametrize(
    "address", ["https://collector", "http://127.0.0.1:4318", "http://[::1]:4318", "http://localhost:4318"]
)
def test_headers_may_be_sent_over_tls_or_to_this_machine(address: str) -> None:
    assert good(f'[otel]\nendpoint = "{address}/v1/traces"\nheaders_file = "otel.headers"').otel is not None


def test_headers_are_read_line_by_line() -> None:
    assert headers_of("x-api-key: a:b\n\nAuthorization: Basic abc=\n") == {
        "x-api-key": "a:b",
        "Authorization": "Basic abc=",
    }


@pytest.mark.parametrize("text", ["no colon", "na me: x", ": x", "x: \x1b[2J", "x: ü"])
def test_a_line_that_is_not_a_header_is_refused_without_its_value(text: str) -> None:
    with pytest.raises(ValueError, match=r"^line 1 ") as caught:
        headers_of(text)
    assert "x:" not in str(caught.value)
