"""The events of a running supervisor, over its control socket; standard library only.

    for event in stream(".rekindle/control.sock", after=12):
        print(event.type, event.document)

A caller that loses the connection connects again after the last event it received, and misses
nothing that the supervisor still keeps.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from .client import PREFIX, ControlError, NoSupervisorError, connect, result_of

if TYPE_CHECKING:
    from typing import Any

SILENCE_S = 15.0
"""The server sends a keep-alive every three seconds; after this silence it counts as gone."""
CONNECT_S = 5.0
LARGEST_HEAD = 64 * 1024
LONGEST_LINE = 8 * 1024 * 1024


class StreamEvent(NamedTuple):
    """One event of the stream."""

    type: str
    document: Any
    id: int | None


def stream(
    path: str,
    *,
    topics: str | None = None,
    after: int | None = None,
    still_there: Callable[[], None] = lambda: None,
) -> Iterator[StreamEvent]:
    """The events of one connection, until it ends.

    Args:
        path: the control socket.
        topics: only these topics, separated by commas.
        after: start after the event with this number.
        still_there: called at every keep-alive of the supervisor, every few seconds.

    Raises:
        NoSupervisorError: no supervisor listens, or the connection is lost.
        InvalidRequestError: the topics are invalid.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connect(connection, path, time.monotonic() + CONNECT_S)
        connection.settimeout(SILENCE_S)
        try:
            connection.sendall(_request(topics, after))
            yield from _events(_lines(connection), still_there)
        except TimeoutError:
            raise NoSupervisorError("the supervisor stopped answering") from None
        except OSError as error:
            raise NoSupervisorError(f"the connection to the supervisor was lost: {error.strerror}") from error


def _request(topics: str | None, after: int | None) -> bytes:
    query = "" if topics is None else f"?topics={topics}"
    # HTTP/1.0, so that the response is not chunked.
    lines = [f"GET {PREFIX}/events{query} HTTP/1.0", "host: rekindle", "accept: text/event-stream"]
    if after is not None:
        lines.append(f"last-event-id: {after}")
    return "\r\n".join([*lines, "", ""]).encode("ascii")


def _lines(connection: socket.socket) -> Iterator[str]:
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


def _events(lines: Iterator[str], still_there: Callable[[], None]) -> Iterator[StreamEvent]:
    type_, data, number = "", "", None
    for line in lines:
        name, _, value = line.partition(": ")
        if line == "":
            if data:
                yield StreamEvent(type_, json.loads(data), number)
            type_, data, number = "", "", None
        elif line.startswith(":"):
            still_there()
        elif name == "event":
            type_ = value
        elif name == "data":
            data = value
        elif name == "id" and value.isdecimal():
            number = int(value)
