"""With a certificate of its own, for remote clients."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
from contextlib import closing
from dataclasses import replace
from http.client import HTTPSConnection
from pathlib import Path

import pytest
from tests.web.conftest import ANY_PORT, Serve


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


def test_it_speaks_tls_and_its_cookie_travels_over_nothing_else(
    serve: Serve, certificate: tuple[Path, Path]
) -> None:
    web = serve(settings=replace(ANY_PORT, tls_cert=certificate[0], tls_key=certificate[1]))
    assert web.server.url == f"https://127.0.0.1:{web.port}/"
    trusting = ssl.create_default_context(cafile=str(certificate[0]))
    with closing(HTTPSConnection("127.0.0.1", web.port, timeout=20, context=trusting)) as connection:
        body = json.dumps({"token": web.server.tokens.viewer})
        connection.request("POST", "/session", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        assert (response.status, "Secure" in str(response.headers["set-cookie"])) == (200, True)
