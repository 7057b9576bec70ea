"""One connection of a worker to its supervisor, used by one thread at a time."""

from __future__ import annotations

import json
import socket
from contextlib import suppress
from typing import Any

from ..claims import QueueUnavailableError
from . import wire

ANSWER_S = 60.0
"""How long the supervisor may take, which waits for its database."""


class RelayConnection:
    """Asks one question at a time. The supervisor knows which worker asks, whatever the worker says."""

    def __init__(self, address: str, generation: int) -> None:
        self._path, _, self._token = address.removeprefix(f"{wire.SCHEME}://").partition("#")
        self._generation = generation
        self._socket: socket.socket | None = None

    def ask(self, do: str, **question: object) -> Any:
        """Ask, and return the answer.

        Raises:
            QueueUnavailableError: there is none; whether the supervisor did what it was asked is unknown.
            RefusedError: the supervisor refuses; nothing was done.
        """
        return self.ask_text(json.dumps({"do": do, **question}, separators=(",", ":")))

    def ask_text(self, question: str) -> Any:
        """The same with a question that is JSON already."""
        connection = self.opened()
        try:
            wire.send_text(connection, question)
            return self.answer(connection)
        except (OSError, ValueError) as error:
            raise self.unavailable(error) from error

    def answer(self, connection: socket.socket) -> Any:
        """The answer to what was sent.

        Raises:
            OSError: there is none.
            ValueError: it cannot be read.
            RefusedError: the supervisor refuses.
        """
        answer = wire.receive(connection)
        if answer is None:
            raise ConnectionError("the supervisor closed the connection")
        if "refused" in answer:
            raise wire.RefusedError(answer["refused"])
        if "error" in answer:
            raise ConnectionError(answer["error"])
        return answer["value"]

    def opened(self) -> socket.socket:
        """The socket, after the token was sent.

        Raises:
            QueueUnavailableError: the supervisor cannot be reached.
        """
        if self._socket is None:
            connection = socket.socket(socket.AF_UNIX)
            connection.settimeout(ANSWER_S)
            try:
                connection.connect(self._path)
                wire.send(connection, {"token": self._token, "generation": self._generation})
            except OSError as error:
                with suppress(OSError):
                    connection.close()
                raise QueueUnavailableError(f"the supervisor cannot be reached: {error}") from error
            self._socket = connection
        return self._socket

    def unavailable(self, error: Exception) -> QueueUnavailableError:
        """Close the connection, whose state is no longer known; the next question opens another."""
        self.close()
        return QueueUnavailableError(str(error))

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        connection, self._socket = self._socket, None
        if connection is not None:
            connection.close()
