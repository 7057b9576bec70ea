"""The server of the control socket in the state directory.

It leaves no thread, descriptor or file behind: `stop` returns within `STOP_S`, even if clients stall.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from ..operator import Operator
from ..server_identity import identity
from .socket_file import SOCKET_NAME, SocketFile

if TYPE_CHECKING:
    from ..serving.held_app import HeldApp
    from ..serving.server_thread import ServerThread

WAITING = 64
"""How many connections may wait before the server runs."""


class ControlServer:
    """The control socket of one operator. Use it as a context manager, or call `start` and `stop`."""

    def __init__(
        self,
        operator: Operator,
        directory: Path,
        *,
        replace_stale: bool = False,
        dashboard: str | None = None,
        inherited: int | None = None,
        held: bool = False,
    ) -> None:
        """Describe a server; nothing runs yet.

        Args:
            operator: carries out the requests.
            directory: the folder of `control.sock`; created with mode 0700 if it is missing.
            replace_stale: replace the socket file of a dead server. Only the owner of the lock
                of this directory's store may set it.
            dashboard: the URL of the same operator's dashboard, if there is one; shown by /info.
            inherited: the listening socket, if the former program of this process bound it.
            held: let requests wait for `open`; a start that fails leaves an inherited socket as it was.
        """
        self._is_held = held
        self._inherited = inherited
        self._kept = -1
        """A second descriptor of the listening socket, which stays open when the server ends."""
        self._held: HeldApp | None = None
        self._dashboard = dashboard
        self._operator = operator
        self._directory = directory
        self._replace_stale = replace_stale
        self._process = os.getpid()
        self._life = threading.Lock()
        self._file: SocketFile | None = None
        self._serving: ServerThread | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def path(self) -> Path:
        """The path of the socket."""
        return self._directory / SOCKET_NAME

    def bind(self) -> None:
        """Bind the socket, which loads next to nothing; clients wait for `start`.

        Raises:
            UnsafePathError: another user could tamper with the directory or the socket.
            GatewayError: the socket exists already, or cannot be created.
        """
        with self._life:
            self._bind()

    def start(self) -> None:
        """Bind the socket unless it is bound, and serve; does nothing if the server already runs.

        Raises:
            UnsafePathError: another user could tamper with the directory or the socket.
            GatewayError: the socket exists already, or cannot be created.
        """
        with self._life:
            if self._serving is not None:
                return
            self._bind()
            assert self._file is not None
            try:
                self._serve(self._file)
            except BaseException:
                if not self._is_held:  # else the former program returns, and needs everything
                    self._end()
                raise

    def open(self) -> None:
        """Answer requests that were held."""
        if self._held is not None:
            self._held.open()

    def stop(self) -> None:
        """Remove the socket and end within `STOP_S`. A second call does nothing, nor does one in a fork."""
        if os.getpid() != self._process:
            return
        with self._life:
            self._end()

    def leave(self) -> int:
        """Serve no longer, and keep the socket open for the program that replaces this one; its descriptor.

        New connections wait until that program serves them.
        """
        with self._life:
            if self._serving is not None:
                self._serving.stop()
            self._serving = None
            return self._kept

    def _bind(self) -> None:
        if self._file is not None:
            return
        inherited, self._inherited = self._inherited, None
        self._file = SocketFile(
            self._directory,
            replace_stale=self._replace_stale,
            inherited=None if inherited is None else os.dup(inherited),
        )
        self._kept = os.dup(self._file.socket.fileno()) if inherited is None else inherited
        self._file.socket.listen(WAITING)

    def _serve(self, file: SocketFile) -> None:
        # All of it is loaded at the start: at a later moment the files may be those of another version.
        from ..api.app import create_app
        from ..serving.call_pools import CallPools
        from ..serving.held_app import HeldApp
        from ..serving.listener import room_for
        from ..serving.server_thread import ServerThread
        from ..serving.uvicorn_server import MOST_CONNECTIONS, HttpProtocol

        pools = CallPools()
        server = identity(self._directory, self._dashboard)
        app = create_app(self._operator, server, pools, most_followers=room_for(MOST_CONNECTIONS) // 2)
        self._held = HeldApp(app) if self._is_held else None
        self._serving = ServerThread(self._held or app, pools, name="control", protocol=HttpProtocol)
        self._serving.start(file.socket, "rekindle-control")

    def _end(self) -> None:
        if self._file is not None:
            self._file.remove()
        if self._serving is not None:
            self._serving.stop()
        if self._file is not None:
            self._file.close()
        if self._kept != -1:
            os.close(self._kept)
            self._kept = -1
        self._file = self._serving = None
