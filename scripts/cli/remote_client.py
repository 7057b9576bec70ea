"""The client of a supervisor's HTTP gateway, for one that runs elsewhere: `--url` and a token.

    RemoteClient(remote_address("https://rekindle.example.org:8377", Path("viewer.token"))).get("/workers")

The token is sent to the named address only: over TLS, or in the clear to this machine, where a
tunnel may begin. No proxy of the environment is used and no redirect is followed.
"""

from __future__ import annotations

import json
import os
import re
import ssl
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Never
from urllib.parse import SplitResult, urlsplit

from rekindle import __version__

from .client import (
    CONNECT_S,
    LARGEST_ANSWER,
    LONGEST_LINE,
    PREFIX,
    SILENCE_S,
    TIMEOUT_S,
    UNREACHABLE,
    ControlClient,
    ControlError,
    NoAnswerError,
    NoSupervisorError,
    OrderRefusedError,
    RemoteAddress,
    check_path,
    document_or_problem,
)

VERSION_HEADER = "rekindle-version"
"""The gateway names its version in every answer to an authenticated client."""
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43,128}")
_PIECE = 262_144
_MISUNDERSTOOD = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNEXPECTED_EOF", "PACKET_LENGTH", "HTTP")


def remote_address(url: str, token_file: Path) -> RemoteAddress:
    """The supervisor of a URL, with the token in a file.

    Raises:
        ValueError: the URL is not one, or the token would be sent unencrypted; the file holds no token,
            or other users can read it.
        OSError: the file cannot be read.
    """
    _check_url(url)
    return RemoteAddress(url.rstrip("/"), _token_of(token_file), str(token_file))


def _check_url(url: str) -> None:
    parts = urlsplit(url)
    try:
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        known = False
    if not known or not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError(f"{url!r} is not an address such as https://rekindle.example.org:8377")
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError("leave user, query and fragment out of the address; the token is read from its file")
    if parts.scheme == "http" and not _is_this_machine(parts):
        host, port = parts.hostname, parts.port or 80
        raise ValueError(
            f"{url} would send the token unencrypted; use https://, or a tunnel: "
            f"ssh -L {port}:127.0.0.1:{port} {host}, and then http://127.0.0.1:{port}"
        )


def _is_this_machine(parts: SplitResult) -> bool:
    try:
        return ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return parts.hostname == "localhost"


def _token_of(path: Path) -> str:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise ValueError(f"{path} is not a file")
        if found.st_uid not in (0, os.geteuid()):
            raise ValueError(f"{path} belongs to another user (uid {found.st_uid})")
        if found.st_mode & 0o077:
            raise ValueError(f"other users can read or change {path}; run: chmod 600 {path}")
        token = file.read(1024).decode("ascii", "replace").strip()
    if _TOKEN.fullmatch(token) is None:
        raise ValueError(
            f"{path} holds no token; copy http-viewer.token or http-operator.token from the state "
            "directory of the supervisor"
        )
    return token


class RemoteClient(ControlClient):
    """The HTTP gateway of one supervisor; each request uses its own connection."""

    def __init__(
        self,
        where: RemoteAddress,
        *,
        timeout_s: float = TIMEOUT_S,
        user: str | None = None,
        reason: str | None = None,
    ) -> None:
        """Create a client; it connects with each request.

        Args:
            where: the URL, and the token.
            timeout_s: how long a request may take in total, by default.
            user: the user on whose behalf the client acts, for the audit.
            reason: why it gives its orders, for the audit.
        """
        super().__init__("", timeout_s=timeout_s, user=user, reason=reason)
        self._where = where
        self._parts = urlsplit(where.url)

    def server(self) -> tuple[int, int]:
        """Refused: the process of a supervisor elsewhere has no pid here."""
        raise OrderRefusedError("only a command on the supervisor's own machine can do this", "refused")

    def lines(self, path: str, headers: Mapping[str, str]) -> Iterator[str]:
        """The lines of an answer without an end, to `GET /api/v1` + path.

        Raises:
            NoSupervisorError: no supervisor is there, or the connection is lost.
        """
        with closing(self._connection(CONNECT_S)) as connection:
            try:
                self._connect(connection)
                connection.sock.settimeout(SILENCE_S)
                answer = self._sent(connection, "GET", path, b"", headers)
                if answer.status != 200:
                    self._outcome(answer, time.monotonic() + SILENCE_S)
                self._check_kind(answer)
                while line := answer.readline(LONGEST_LINE):
                    yield line.decode("utf-8", "replace").rstrip("\r\n")
            except TimeoutError:
                message = f"the supervisor at {self._where.url} stopped answering"
                raise NoSupervisorError(message, UNREACHABLE) from None
            except (OSError, HTTPException) as error:
                self._raise(error)

    def _ask(self, method: str, path: str, body: bytes, timeout_s: float | None) -> Any:
        check_path(path)
        whole_s = self._timeout_s if timeout_s is None else timeout_s
        deadline = time.monotonic() + whole_s
        with closing(self._connection(whole_s)) as connection:
            try:
                self._connect(connection)
                return self._outcome(self._sent(connection, method, path, body, {}), deadline)
            except (OSError, HTTPException) as error:
                self._raise(error)

    def _connection(self, timeout_s: float) -> HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "http":
            return HTTPConnection(host, port, timeout=timeout_s)
        return HTTPSConnection(host, port, timeout=timeout_s, context=ssl.create_default_context())

    def _connect(self, connection: HTTPConnection) -> None:
        try:
            connection.connect()
        except TimeoutError:
            message = f"no supervisor is reached at {self._where.url}: no answer to the connection in time"
            raise NoSupervisorError(message, UNREACHABLE) from None

    def _sent(
        self, connection: HTTPConnection, method: str, path: str, body: bytes, more: Mapping[str, str]
    ) -> HTTPResponse:
        headers = {"Authorization": f"Bearer {self._where.token}", **self._claims, **more}
        if method == "POST":
            headers["Content-Type"] = "application/json"
        connection.request(method, f"{self._parts.path}{PREFIX}{path}", body or None, headers)
        return connection.getresponse()

    def _outcome(self, answer: HTTPResponse, deadline: float) -> Any:
        """The document of an answer; raises the problem if it is one."""
        body = bytearray()
        while piece := answer.read1(_PIECE):
            body += piece
            if len(body) > LARGEST_ANSWER:
                raise ControlError(f"{self._where.url} sent an invalid response")
            if time.monotonic() > deadline:
                raise TimeoutError
        if 300 <= answer.status < 400:
            to = answer.getheader("location", "another address")
            raise OrderRefusedError(
                f"{self._where.url} redirects to {to}; name the address itself", "refused"
            )
        try:
            document = json.loads(bytes(body))
        except ValueError:
            self._raise_foreign(answer)
        code = document.get("error") if isinstance(document, dict) else None
        if answer.status == 401 and code == "unauthorized":
            raise OrderRefusedError(self._wrong_token(), "unauthorized", 401)
        if code in ("no_such_path", "method_not_allowed") and answer.getheader(VERSION_HEADER):
            self._raise_unknown(answer.getheader(VERSION_HEADER, ""))
        if answer.status == 200 or code is None:
            self._check_kind(answer)
        return document_or_problem(answer.status, document)

    def _check_kind(self, answer: HTTPResponse) -> None:
        if answer.getheader(VERSION_HEADER) is None:
            self._raise_foreign(answer)

    def _wrong_token(self) -> str:
        return (
            f"the supervisor at {self._where.url} does not accept the token in {self._where.token_file}; "
            "copy http-viewer.token or http-operator.token from its state directory"
        )

    def _raise_foreign(self, answer: HTTPResponse) -> Never:
        kind = answer.getheader("content-type", "unknown type").partition(";")[0]
        raise NoSupervisorError(
            f"{self._where.url} answers (status {answer.status}, {kind}), but not as a Rekindle supervisor "
            f"of version {__version__} or later; is it the address that `rekindle dashboard` prints there?",
            UNREACHABLE,
        )

    def _raise_unknown(self, version: str) -> Never:
        raise OrderRefusedError(
            f"the supervisor at {self._where.url} has version {version} and does not know this request; "
            f"this rekindle has version {__version__}: use the same version on both sides",
            "version",
        )

    def _raise(self, error: OSError | HTTPException) -> Never:
        """The error of a connection, as a sentence."""
        url = self._where.url
        if isinstance(error, TimeoutError):
            message = f"the supervisor at {url} did not answer in time; it may still carry out the order"
            raise NoAnswerError(message, "timeout") from None
        if isinstance(error, ssl.SSLCertVerificationError):
            why = f"{error.verify_message}; SSL_CERT_FILE names a certificate authority of your own"
            raise OrderRefusedError(f"the certificate of {url} is not trusted: {why}", UNREACHABLE) from None
        if isinstance(error, ssl.SSLError) and any(word in (error.reason or "") for word in _MISUNDERSTOOD):
            why = "it does not answer with TLS; is it http://, through a tunnel?"
        elif isinstance(error, HTTPException):  # RemoteDisconnected is a ConnectionResetError too
            why = "it closes the connection or does not answer with HTTP"
            why += "; does it need https://?" if self._parts.scheme == "http" else ""
        else:
            why = error.strerror or str(error)
        raise NoSupervisorError(f"no supervisor is reached at {url}: {why}", UNREACHABLE) from None
