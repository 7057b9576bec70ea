"""Opens the store of a supervisor; a child process upgrades its tables first.

Alembic takes 12 MB of memory that a process never releases once it has loaded it, and a supervisor
is a long-running process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from loguru import logger

from rekindle.actors.errors import StoreError, StoreUnavailableError
from rekindle.actors.ports import Store
from rekindle.persistence import MemoryStore, new_database, open_store
from rekindle.persistence.schema.migrate import REVISIONS
from rekindle.persistence.store_check import is_current

from ..config import Config

_UPGRADE = """
import os, sys
from rekindle.persistence import open_store
open_store(os.fsdecode(sys.stdin.buffer.read()), exclusive=False).close()
"""
_UPGRADE_TIMEOUT_S = 120.0

RETRY_S = 0.5
"""How often an upgraded supervisor tries to open a database that is not available."""


def open_patiently(config: Config, lock: int | None, stops: Callable[[float], bool] | None) -> Store:
    """The store; after an upgrade it waits, as workers run that would end with this process.

    Args:
        config: names the database.
        lock: what holds the right to it already, if this process was upgraded.
        stops: waits so many seconds; whether the supervisor is to stop. Then a store in memory will do,
            as the workers only have to be ended. None: the process was not upgraded.

    Raises:
        StoreError: it cannot be used.
    """
    while True:
        try:
            return open_upgraded(config.database, config.state_dir, config.worker_database, lock)
        except StoreUnavailableError as error:
            if stops is None:
                raise
            logger.warning("upgrade: no worker is watched until the database is available: {}", str(error))
            if stops(RETRY_S):
                logger.error("upgrade: stopping without the database; how the workers end is not recorded")
                return MemoryStore()


def open_upgraded(
    database: str, state_dir: Path, worker_database: str | None = None, lock: int | None = None
) -> Store:
    """Open the store with its tables upgraded; what a server cannot take at a stop is kept in `state_dir`.

    `lock` is the descriptor that holds the right to it already, if this process was upgraded.

    Raises:
        StoreError: as `open_store` does.
    """
    if not _is_current(database, lock):
        _upgrade_in_child(database)
    spool = state_dir / "unsaved" if "://" in database else None
    return open_store(database, worker_database=worker_database, spool=spool, lock=lock)


def _is_current(database: str, lock: int | None) -> bool:
    try:
        return is_current(database)
    except StoreUnavailableError:
        # A new file needs no upgrade unless the file of its statements is behind, and the file of the former
        # program of this process returns; an unreachable server is not tried twice.
        return "://" in database or lock is not None or new_database.revision() == REVISIONS[-1]
    except StoreError:
        return True  # opening it reports the error


def _upgrade_in_child(database: str) -> None:
    """Upgrade the tables; if that fails, `open_store` tries again and reports the error."""
    with suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(
            [sys.executable, "-P", "-c", _UPGRADE],
            # Not as an argument: every user could read the password in it.
            input=os.fsencode(database),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_UPGRADE_TIMEOUT_S,
            check=False,
        )
