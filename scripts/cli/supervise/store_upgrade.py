"""Opens the store of a supervisor, and has its tables brought up to date by another process.

What makes the tables (alembic) takes 12 MB, which a process that has loaded it never gives back, and
a supervisor lives for long.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress

from rekindle.actors.errors import StoreError, StoreUnavailableError
from rekindle.actors.ports import Store
from rekindle.persistence import open_store
from rekindle.persistence.store_check import is_current

_UPGRADE = """
import os, sys
from rekindle.persistence import open_store
open_store(os.fsdecode(sys.stdin.buffer.read()), exclusive=False).close()
"""
_PATIENCE_S = 120.0


def opened(database: str) -> Store:
    """The store, with its tables up to date.

    Raises:
        StoreError: whatever `open_store` raises.
    """
    if not _is_current(database):
        _upgrade_apart(database)
    return open_store(database)


def _is_current(database: str) -> bool:
    try:
        return is_current(database)
    except StoreUnavailableError:
        return "://" in database  # a file is just not there yet; a server is not to be asked twice
    except StoreError:
        return True  # what is wrong with it is said when it is opened


def _upgrade_apart(database: str) -> None:
    """Upgrade it; where that fails, whoever opens it tries again and says why."""
    with suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(
            [sys.executable, "-P", "-c", _UPGRADE],
            # Not as an argument, where everybody could read the password in it.
            input=os.fsencode(database),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_PATIENCE_S,
            check=False,
        )
