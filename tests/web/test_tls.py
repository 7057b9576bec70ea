"""With a certificate of its own, for remote clients."""

from __future__ import annotations

import json
import ssl
from contextlib import closing
from dataclasses import replace
from http.client import HTTPSConnection
from pathlib import Path

import pytest
from tests.web.conftest import ANY_PORT, Serve, certificate

from rekindle.actors.gateways.gateway_errors import UnsafePathError
from rekindle.actors.gateways.http.http_server import tls_settings

__all__ = ["certificate"]


def test_it_speaks_tls(serve: Serve, certificate: tuple[Path, Path]) -> None:
    web = serve(settings=replace(ANY_PORT, tls_cert=certificate[0], tls_key=certificate[1]))
    assert web.server.url == f"https://127.0.0.1:{web.port}/"
    trusting = ssl.create_default_context(cafile=str(certificate[0]))
    with closing(HTTPSConnection("127.0.0.1", web.port, timeout=20, context=trusting)) as connection:
        body = json.dumps({"token": web.server.tokens.viewer})
        connection.request("POST", "/session", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        assert (response.status, json.loads(response.read())["role"]) == (200, "viewer")


def test_a_key_that_every_user_can_read_is_refused(serve: Serve, certificate: tuple[Path, Path]) -> None:
    certificate[1].chmod(0o644)
    with pytest.raises(UnsafePathError, match="readable by other users"):
        serve(settings=replace(ANY_PORT, tls_cert=certificate[0], tls_key=certificate[1]))
    certificate[1].chmod(0o640)  # as distributions arrange it, with a group of users that may
    assert tls_settings(replace(ANY_PORT, tls_cert=certificate[0], tls_key=certificate[1]))
