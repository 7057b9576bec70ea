"""The control socket's server: in the state directory, for whoever may connect there.

It leaves no thread, descriptor or file behind: `stop` takes no more than `STOP_S`, whatever the
clients do.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from ..api.app import create_app
from ..operator import Operator
from ..serving.call_pools import Lanes
from ..serving.http_protocol import ControlProtocol
from ..serving.server_thread import STOP_S, Serving, identity
from .socket_file import SOCKET_NAME, SocketFile

__all__ = ["STOP_S", "ControlServer"]


class ControlServer:
    """The control socket of one operator. Use it as a context manager, or call `start` and `stop`."""

    def __init__(
        self,
        operator: Operator,
        directory: Path,
        *,
        replace_stale: bool = False,
        dashboard: str | None = None,
    ) -> None:
        """Describe a server; nothing runs yet.

        Args:
            operator: who carries out what is asked.
            directory: where `control.sock` shall be; created with mode 0700 if it is missing.
            replace_stale: replace the socket file of a server that is dead. Only whoever holds
                the lock of this directory's store may say so.
            dashboard: where the same operator's dashboard is, if there is one; told to who asks.
        """
        self._dashboard = dashboard
        self._operator = operator
        self._directory = directory
        self._replace_stale = replace_stale
        self._process = os.getpid()
        self._life = threading.Lock()
        self._file: SocketFile | None = None
        self._serving: Serving | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def path(self) -> Path:
        """Where clients connect to."""
        return self._directory / SOCKET_NAME

    def start(self) -> None:
        """Bind the socket and answer from now on; a server that runs is left alone.

        Raises:
            UnsafePathError: somebody else could tamper with the directory or the socket.
            GatewayError: there is a socket already, or none can be made.
        """
        with self._life:
            if self._serving is not None:
                return
            self._file = SocketFile(self._directory, replace_stale=self._replace_stale)
            try:
                self._serve(self._file)
            except BaseException:
                self._end()
                raise

    def stop(self) -> None:
        """Remove the socket and end within `STOP_S`. A second call does nothing, nor does one in a fork."""
        if os.getpid() != self._process:
            return
        with self._life:
            self._end()

    def _serve(self, file: SocketFile) -> None:
        lanes = Lanes()
        app = create_app(self._operator, identity(self._directory, self._dashboard), lanes)
        self._serving = Serving(app, lanes, name="the control socket", protocol=ControlProtocol)
        self._serving.start(file.socket, "rekindle-control")

    def _end(self) -> None:
        if self._file is not None:
            self._file.remove()
        if self._serving is not None:
            self._serving.stop()
        if self._file is not None:
            self._file.close()
        self._file = self._serving = None
