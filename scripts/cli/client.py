"""Asks a running supervisor over its control socket; the standard library only, quick to import.

    ControlClient("state/control.sock").get("/workers")

It is here and not beside the server because it must not load the actors: a whole
`rekindle status` is shorter than that import. For the same reason it has errors of its own, with
the names and the texts of those that the server met, and does without `http.client`.

    ControlError                   the supervisor said no, or said nothing; the text says why
    ├── NoSupervisorError          nobody listens, or it went away before it answered
    ├── UnknownWorkerError         no worker or group has that name
    ├── RequestRefusedError        understood, and declined
    ├── RequestTimeoutError        no answer in time; an order may still be carried out
    └── InvalidRequestError        the arguments make no sense
"""

from __future__ import annotations

import json
import os
import socket
import struct
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from typing import Any

PREFIX = "/api/v1"
TIMEOUT_S = 15.0
LONGEST_PATH = 107
LARGEST_ANSWER = 64 * 1024 * 1024
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:-~")


class ControlError(Exception):
    """The supervisor said no, or said nothing."""

    def __init__(self, message: str, error: str = "", status: int = 0) -> None:
        self.error = error
        """The server's word for it, such as `unknown_worker`."""
        self.status = status
        super().__init__(message)


class NoSupervisorError(ControlError):
    """Nobody listens on the socket, or it went away before it answered."""


class UnknownWorkerError(ControlError):
    """No worker or group has that name."""


class RequestRefusedError(ControlError):
    """The request was understood and declined."""


class RequestTimeoutError(ControlError):
    """No answer came in time; an order may still be carried out."""


class InvalidRequestError(ControlError):
    """The arguments make no sense."""


_KINDS: dict[str, type[ControlError]] = {
    "everything_paused": RequestRefusedError,
    "forbidden": RequestRefusedError,
    "invalid": InvalidRequestError,
    "malformed": InvalidRequestError,
    "refused": RequestRefusedError,
    "timeout": RequestTimeoutError,
    "too_large": InvalidRequestError,
    "unknown_job": RequestRefusedError,
    "unknown_queue": InvalidRequestError,
    "unknown_topic": InvalidRequestError,
    "unknown_worker": UnknownWorkerError,
    "worker_paused": RequestRefusedError,
}


def problem(word: str, message: str, status: int) -> ControlError:
    """What is raised for a problem that the server has a word for."""
    return _KINDS.get(word, ControlError)(message, word, status)


def path_of(*parts: str) -> str:
    """A path of these parts, each quoted: `path_of("workers", "worker:tag:0", "history")`.

    Raises:
        UnknownWorkerError: a part is empty or has a slash, and would lead to another place.
    """
    for part in parts:
        if not part or "/" in part:
            raise UnknownWorkerError(f"nobody is called {part!r}", "unknown_worker", 404)
    return "".join("/" + "".join(_quoted(char) for char in part) for part in parts)


class Reader(Protocol):
    """Whoever answers what `GET /api/v1` + path asks."""

    def get(self, path: str) -> Any:
        """The document."""
        ...


class ControlClient:
    """One supervisor's control socket; a connection a request."""

    def __init__(
        self, socket_path: str | os.PathLike[str], *, timeout_s: float = TIMEOUT_S, user: str | None = None
    ) -> None:
        """Describe a client; nothing is connected yet.

        Args:
            socket_path: the supervisor's `control.sock`.
            timeout_s: how long a whole request may take, unless it says otherwise.
            user: for whom the client acts, if not for whom it runs as; noted in the audit.
        """
        self._path = os.fspath(socket_path)
        self._timeout_s = timeout_s
        self._user = user

    def get(self, path: str, *, timeout_s: float | None = None) -> Any:
        """What the server answers to `GET /api/v1` + path."""
        return self._ask("GET", path, b"", timeout_s)

    def post(self, path: str, body: dict[str, Any] | None = None, *, timeout_s: float | None = None) -> Any:
        """What the server answers to `POST /api/v1` + path."""
        return self._ask("POST", path, json.dumps(body or {}).encode(), timeout_s)

    def server(self) -> tuple[int, int]:
        """The process that serves the socket, by the kernel's word, and a pidfd of it.

        Raises:
            NoSupervisorError: there is none.
            RequestRefusedError: it cannot be reached from here.
        """
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connect(connection, self._path, time.monotonic() + self._timeout_s)
            pid, _ = _peer(connection)
            try:
                pidfd = os.pidfd_open(pid)
            except OSError as error:
                why = f"process {pid} cannot be reached from here: {error.strerror}"
                raise RequestRefusedError(f"the supervisor runs elsewhere, {why}", "refused") from None
            if not _is_open(connection):  # it ended, and another process may have its number
                os.close(pidfd)
                raise NoSupervisorError("the supervisor went away")
        return pid, pidfd

    def _ask(self, method: str, path: str, body: bytes, timeout_s: float | None) -> Any:
        deadline = time.monotonic() + (self._timeout_s if timeout_s is None else timeout_s)
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connect(connection, self._path, deadline)
                answer = _exchange(connection, self._request(method, path, body), deadline)
        except TimeoutError:
            message = "the supervisor did not answer in time; an order may still be carried out"
            raise RequestTimeoutError(message, "timeout") from None
        except OSError as error:
            raise NoSupervisorError(f"the supervisor went away: {error.strerror}") from error
        return result_of(answer)

    def _request(self, method: str, path: str, body: bytes) -> bytes:
        if not path.isascii() or not path.isprintable() or " " in path:
            raise InvalidRequestError(f"{path!r} is no path", "invalid")
        lines = [f"{method} {PREFIX}{path} HTTP/1.1", "host: rekindle", "connection: close"]
        if self._user:
            claimed = "".join(char for char in self._user if char.isprintable() and char.isascii())
            lines.append(f"x-rekindle-user: {claimed}")
        lines.append(f"content-length: {len(body)}\r\n\r\n")
        return "\r\n".join(lines).encode("ascii") + body


def connect(connection: socket.socket, path: str, deadline: float) -> None:
    """Connect to a supervisor's socket, and make sure that it is one whom we may tell anything.

    Raises:
        NoSupervisorError: nobody listens.
        RequestRefusedError: it is another user's.
    """
    try:
        _connect(connection, path, deadline)
    except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError) as error:
        raise NoSupervisorError(
            f"no supervisor listens on {os.path.abspath(path)}: {error.strerror}"
        ) from error
    except PermissionError as error:
        raise RequestRefusedError(f"{path} belongs to another user's supervisor", "forbidden") from error
    _check_server(connection)


def _connect(connection: socket.socket, path: str, deadline: float) -> None:
    directory = None
    where = path
    if len(os.fsencode(path)) > LONGEST_PATH:
        directory = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        where = f"/proc/self/fd/{directory}/{os.path.basename(path)}"
    try:
        while True:
            connection.settimeout(_left(deadline))
            try:
                connection.connect(where)
                return
            except BlockingIOError:  # many wait to be let in
                time.sleep(min(0.02, _left(deadline)))
    finally:
        if directory is not None:
            os.close(directory)


def _check_server(connection: socket.socket) -> None:
    """Tell nothing to somebody else who put a socket there."""
    _, uid = _peer(connection)
    if os.geteuid() not in (0, uid) and uid != 0:
        raise RequestRefusedError(f"the socket is served by another user (uid {uid})", "forbidden")


def _is_open(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def _peer(connection: socket.socket) -> tuple[int, int]:
    """Who is at the other end: its process and its user."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("iII"))
    pid, uid, _ = struct.unpack("iII", credentials)
    return pid, uid


def _exchange(connection: socket.socket, request: bytes, deadline: float) -> bytes:
    connection.settimeout(_left(deadline))
    with suppress(BrokenPipeError, ConnectionResetError):  # turned away; why may be there to read
        connection.sendall(request)
    answer = bytearray()
    while len(answer) < LARGEST_ANSWER:
        connection.settimeout(_left(deadline))
        received = connection.recv(262_144)
        if not received:
            break
        answer += received
    return bytes(answer)


def result_of(answer: bytes) -> Any:
    """The JSON in an HTTP answer, or the problem that it tells, raised."""
    head, whole, body = answer.partition(b"\r\n\r\n")
    try:
        status = int(head.split(b" ", 2)[1])
        document = json.loads(body)
    except (IndexError, ValueError):
        if whole:
            raise ControlError("the supervisor's answer makes no sense") from None
        raise NoSupervisorError("the supervisor went away before it answered") from None
    if status == 200:
        return document
    told = document if isinstance(document, dict) else {}
    raise problem(str(told.get("error", "")), str(told.get("message", f"status {status}")), status)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _quoted(char: str) -> str:
    return char if char in _PLAIN else "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "replace"))
