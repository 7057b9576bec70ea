"""The client of a supervisor's control socket; standard library only, quick to import.

    ControlClient("state/control.sock").get("/workers")

It is separate from the server because it must not load the actors: that import takes longer than
a whole `rekindle status`. For the same reason it has its own errors, with the texts of the
server's errors, and does not use `http.client`.

    ControlError                   the request failed; the text says why
    ├── NoSupervisorError          no supervisor listens, or it ended before it answered
    ├── UnknownTargetError         no worker or group has that name
    ├── OrderRefusedError          the supervisor refused a valid request
    ├── NoAnswerError              no answer in time; an order may still be carried out
    └── InvalidArgumentsError      the arguments are invalid
"""

from __future__ import annotations

import json
import os
import socket
import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from typing import Any

PREFIX = "/api/v1"
TIMEOUT_S = 15.0
LONGEST_PATH = 107
LARGEST_ANSWER = 64 * 1024 * 1024
CONNECT_S = 5.0
"""How long a connection for events may take."""
SILENCE_S = 15.0
"""The server sends a keep-alive every three seconds; after this silence it counts as gone."""
UNREACHABLE = "unreachable"
"""The code of errors about a supervisor that is not reached by its URL."""
LARGEST_HEAD = 64 * 1024
LONGEST_LINE = 8 * 1024 * 1024
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:-~")


class ControlError(Exception):
    """A request failed; the text says why."""

    def __init__(self, message: str, error: str = "", status: int = 0) -> None:
        self.error = error
        """The server's error code, such as `unknown_worker`."""
        self.status = status
        super().__init__(message)


class NoSupervisorError(ControlError):
    """No supervisor listens on the socket, or it ended before it answered."""


class UnknownTargetError(ControlError):
    """No worker or group has that name."""


class OrderRefusedError(ControlError):
    """The supervisor refused a valid request."""


class NoAnswerError(ControlError):
    """No answer came in time; an order may still be carried out."""


class InvalidArgumentsError(ControlError):
    """The arguments are invalid."""


_KINDS: dict[str, type[ControlError]] = {
    "everything_paused": OrderRefusedError,
    "forbidden": OrderRefusedError,
    "invalid": InvalidArgumentsError,
    "malformed": InvalidArgumentsError,
    "refused": OrderRefusedError,
    "timeout": NoAnswerError,
    "too_large": InvalidArgumentsError,
    "unknown_job": OrderRefusedError,
    "unknown_queue": InvalidArgumentsError,
    "unknown_topic": InvalidArgumentsError,
    "unknown_worker": UnknownTargetError,
    "worker_paused": OrderRefusedError,
}


def problem(code: str, message: str, status: int) -> ControlError:
    """The exception for an error code of the server."""
    return _KINDS.get(code, ControlError)(message, code, status)


def path_of(*parts: str) -> str:
    """A path of these parts, each percent-encoded: `path_of("workers", "worker:tag:0", "history")`.

    Raises:
        UnknownTargetError: a part is empty or contains a slash, and would lead to another route.
    """
    for part in parts:
        if not part or "/" in part:
            raise UnknownTargetError(f"no worker is called {part!r}", "unknown_worker", 404)
    return "".join("/" + "".join(_quoted(char) for char in part) for part in parts)


class RemoteAddress(NamedTuple):
    """A supervisor that is reached by the URL of its HTTP gateway; `remote_client` speaks to it."""

    url: str
    token: str
    token_file: str
    """Where the token was read, for messages."""

    def __str__(self) -> str:
        return self.url

    def __repr__(self) -> str:
        return f"RemoteAddress({self.url!r})"  # without the token


class Reader(Protocol):
    """Answers `GET /api/v1` + path."""

    def get(self, path: str) -> Any:
        """The document."""
        ...


class ControlClient:
    """The control socket of one supervisor; each request uses its own connection."""

    def __init__(
        self,
        socket_path: str | os.PathLike[str],
        *,
        timeout_s: float = TIMEOUT_S,
        user: str | None = None,
        reason: str | None = None,
    ) -> None:
        """Create a client; it connects with each request.

        Args:
            socket_path: the supervisor's `control.sock`.
            timeout_s: how long a request may take in total, by default.
            user: the user on whose behalf the client acts (under sudo, say), for the audit.
            reason: why it gives its orders, for the audit.
        """
        self._path = os.fspath(socket_path)
        self._timeout_s = timeout_s
        claimed = {"x-rekindle-user": user, "x-rekindle-reason": reason}
        self._claims = {name: _header(value) for name, value in claimed.items() if value}

    def get(self, path: str, *, timeout_s: float | None = None) -> Any:
        """The server's answer to `GET /api/v1` + path."""
        return self._ask("GET", path, b"", timeout_s)

    def post(self, path: str, body: dict[str, Any] | None = None, *, timeout_s: float | None = None) -> Any:
        """The server's answer to `POST /api/v1` + path."""
        return self._ask("POST", path, json.dumps(body or {}).encode(), timeout_s)

    def lines(self, path: str, headers: Mapping[str, str]) -> Iterator[str]:
        """The lines of an answer without an end, to `GET /api/v1` + path.

        Raises:
            NoSupervisorError: no supervisor listens, or the connection is lost.
        """
        # HTTP/1.0, so that the response is not chunked.
        head = [f"GET {PREFIX}{path} HTTP/1.0", "host: rekindle"]
        head += [f"{name}: {value}" for name, value in headers.items()]
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connect(connection, self._path, time.monotonic() + CONNECT_S)
            connection.settimeout(SILENCE_S)
            try:
                connection.sendall("\r\n".join([*head, "", ""]).encode("ascii"))
                yield from _received_lines(connection)
            except TimeoutError:
                raise NoSupervisorError("the supervisor stopped answering") from None
            except OSError as error:
                raise NoSupervisorError(
                    f"the connection to the supervisor was lost: {error.strerror}"
                ) from error

    def server(self) -> tuple[int, int]:
        """The pid of the process that serves the socket, as the kernel reports it, and a pidfd.

        Raises:
            NoSupervisorError: no supervisor is running.
            OrderRefusedError: its process is not visible from here, such as in another container.
        """
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connect(connection, self._path, time.monotonic() + self._timeout_s)
            pid, _ = _peer(connection)
            try:
                pidfd = os.pidfd_open(pid)
            except OSError as error:
                why = f"cannot open its process {pid}: {error.strerror}"
                raise OrderRefusedError(
                    f"the supervisor is not reachable from here: {why}", "refused"
                ) from None
            if not _is_open(connection):  # it ended, and another process may have its pid
                os.close(pidfd)
                raise NoSupervisorError("the supervisor ended during the request")
        return pid, pidfd

    def _ask(self, method: str, path: str, body: bytes, timeout_s: float | None) -> Any:
        deadline = time.monotonic() + (self._timeout_s if timeout_s is None else timeout_s)
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connect(connection, self._path, deadline)
                answer = _exchange(connection, self._request(method, path, body), deadline)
        except TimeoutError:
            message = "the supervisor did not answer in time; it may still carry out the order"
            raise NoAnswerError(message, "timeout") from None
        except OSError as error:
            raise NoSupervisorError(f"the connection to the supervisor was lost: {error.strerror}") from error
        return result_of(answer)

    def _request(self, method: str, path: str, body: bytes) -> bytes:
        check_path(path)
        lines = [f"{method} {PREFIX}{path} HTTP/1.1", "host: rekindle", "connection: close"]
        lines += [f"{name}: {value}" for name, value in self._claims.items()]
        lines.append(f"content-length: {len(body)}\r\n\r\n")
        return "\r\n".join(lines).encode("ascii") + body


def check_path(path: str) -> None:
    """Refuse a path that would break the request.

    Raises:
        InvalidArgumentsError: it has characters that a request line cannot have.
    """
    if not path.isascii() or not path.isprintable() or " " in path:
        raise InvalidArgumentsError(f"{path!r} is not a valid path", "invalid")


def _header(value: str) -> str:
    return "".join(char for char in value if char.isprintable() and char.isascii())


def connect(connection: socket.socket, path: str, deadline: float) -> None:
    """Connect to a supervisor's socket, and check that the supervisor is ours or root's.

    Raises:
        NoSupervisorError: no supervisor listens.
        OrderRefusedError: the socket belongs to another user.
    """
    try:
        _connect(connection, path, deadline)
    except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError) as error:
        raise NoSupervisorError(
            f"no supervisor listens on {os.path.abspath(path)}: {error.strerror}"
        ) from error
    except PermissionError as error:
        raise OrderRefusedError(f"{path} belongs to another user's supervisor", "forbidden") from error
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
            except BlockingIOError:  # the backlog is full
                time.sleep(min(0.02, _left(deadline)))
    finally:
        if directory is not None:
            os.close(directory)


def _check_server(connection: socket.socket) -> None:
    """Refuse a socket that another user created in place of the supervisor's."""
    _, uid = _peer(connection)
    if os.geteuid() not in (0, uid) and uid != 0:
        raise OrderRefusedError(f"the socket is served by another user (uid {uid})", "forbidden")


def _is_open(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def _peer(connection: socket.socket) -> tuple[int, int]:
    """The pid and the uid of the other end."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("iII"))
    pid, uid, _ = struct.unpack("iII", credentials)
    return pid, uid


def _exchange(connection: socket.socket, request: bytes, deadline: float) -> bytes:
    connection.settimeout(_left(deadline))
    with suppress(BrokenPipeError, ConnectionResetError):  # refused; the reason may still be readable
        connection.sendall(request)
    answer = bytearray()
    while len(answer) < LARGEST_ANSWER:
        connection.settimeout(_left(deadline))
        received = connection.recv(262_144)
        if not received:
            break
        answer += received
    return bytes(answer)


def _received_lines(connection: socket.socket) -> Iterator[str]:
    """The lines of the response body; raises the problem if the status is not 200."""
    buffer = bytearray()
    while b"\r\n\r\n" not in buffer:
        received = connection.recv(65536)
        if not received or len(buffer) > LARGEST_HEAD:
            break
        buffer += received
    head, _, body = bytes(buffer).partition(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n", 1)[0]:
        _raise_problem(connection, bytes(buffer))
    buffer = bytearray(body)
    while True:
        while (end := buffer.find(b"\n")) != -1:
            yield buffer[:end].decode("utf-8", "replace")
            del buffer[: end + 1]
        if len(buffer) > LONGEST_LINE:
            raise ControlError("the supervisor sent an invalid response")
        received = connection.recv(262_144)
        if not received:
            return
        buffer += received


def _raise_problem(connection: socket.socket, begun: bytes) -> None:
    answer = bytearray(begun)
    while len(answer) < LARGEST_HEAD and (received := connection.recv(65536)):
        answer += received
    result_of(bytes(answer))
    raise ControlError("the supervisor sent an invalid response")


def result_of(answer: bytes) -> Any:
    """The JSON of an HTTP response; raises the problem that it reports."""
    head, whole, body = answer.partition(b"\r\n\r\n")
    try:
        status = int(head.split(b" ", 2)[1])
        document = json.loads(body)
    except (IndexError, ValueError):
        if whole:
            raise ControlError("the supervisor sent an invalid response") from None
        raise NoSupervisorError("the supervisor ended before it answered") from None
    return document_or_problem(status, document)


def document_or_problem(status: int, document: Any) -> Any:
    """A decoded answer; raises the problem if it is one."""
    if status == 200:
        return document
    fields = document if isinstance(document, dict) else {}
    raise problem(str(fields.get("error", "")), str(fields.get("message", f"status {status}")), status)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _quoted(char: str) -> str:
    return char if char in _PLAIN else "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "replace"))
