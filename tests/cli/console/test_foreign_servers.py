"""`--url` with a server that is not a supervisor, or not the right one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from tests.cli.console.test_url import TOKEN, Remote, secret


@contextmanager
def server(status: int, body: bytes, **headers: str) -> Iterator[str]:
    """A server that gives every request the same answer; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Not to standard error."""

    with HTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.server_port}"
        finally:
            listening.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("status", "body"),
    [(200, b"<html>hello</html>"), (404, b"<html>no</html>"), (200, b'{"workers": []}'), (401, b"{}")],
)
def test_a_server_that_is_not_a_rekindle_is_named(tmp_path: Path, status: int, body: bytes) -> None:
    with server(status, body, content_type="text/html") as url:
        done = Remote(tmp_path, url, secret(tmp_path, TOKEN))("status")
    assert done.code == 3
    assert f"answers (status {status}, text/html), but not as a Rekindle supervisor" in done.err


def test_a_redirect_is_not_followed_with_the_token(tmp_path: Path) -> None:
    with server(302, b"", location="https://elsewhere.example/") as url:
        done = Remote(tmp_path, url, secret(tmp_path, TOKEN))("status")
    assert done.code == 1
    assert "redirects to https://elsewhere.example/" in done.err


def test_a_supervisor_of_an_older_version_is_named(tmp_path: Path) -> None:
    body = b'{"error": "no_such_path", "message": "no such path"}'
    with server(404, body, rekindle_version="0.0.9") as url:
        done = Remote(tmp_path, url, secret(tmp_path, TOKEN))("status")
    assert done.code == 1
    assert "has version 0.0.9 and does not know this request" in done.err
