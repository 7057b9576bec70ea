"""A database with all tables and no rows, to copy."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import threading
from pathlib import Path

from rekindle.persistence import open_store

_making = threading.Lock()
_empty: list[Path] = []


def empty_database() -> Path:
    """Its file, created once per process, because that takes longer than many scenarios and tests."""
    with _making:  # alembic works for one thread at a time
        if not _empty:
            folder = Path(tempfile.mkdtemp(prefix="rekindle-empty-"))
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            open_store(folder / "rekindle.db").close()
            _empty.append(folder / "rekindle.db")
        return _empty[0]
