"""The log files of the workers of a file: where they are, and how the supervisor reads them for a client."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from loguru import logger

from rekindle.actors import WorkerSpec
from rekindle.actors.processes.logs.log_writer import log_path
from rekindle.actors.processes.trusted_path import opened
from rekindle.actors.views.log_page import LogPage, LogQuery

from ..config import Config
from ..console.logs.log_files import note_files
from ..console.logs.log_pages import page


def stored_page(spec: WorkerSpec, query: LogQuery) -> LogPage | None:
    """A page of a worker's log file; None if it has none."""
    if spec.log is None or spec.log.file is None:
        return None
    return page(log_path(spec), spec.id, query, _opened, gives_way=True)


def note_log_files(config: Config) -> None:
    """Let `rekindle output` find the log files, also when no supervisor runs."""
    logged = [spec for spec in config.specs() if spec.log is not None and spec.log.file is not None]
    try:
        note_files(config.state_dir, {spec.id: log_path(spec) for spec in logged})
    except OSError as error:
        logger.warning("config: `rekindle output` cannot find the log files: {}", str(error))


@contextmanager
def _opened(path: str) -> Iterator[IO[bytes]]:
    """A log file for reading. Its folder may belong to the user of a worker, who can put anything there.

    Raises:
        OSError: it is not a regular file with one name, or another user's link leads elsewhere.
    """
    descriptor = opened(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
            raise OSError(f"{path} is not a regular file with one name")
        if not path.endswith(".gz"):
            yield file
            return
        import gzip

        with gzip.GzipFile(fileobj=file) as unpacked:
            yield unpacked  # type: ignore[misc]
