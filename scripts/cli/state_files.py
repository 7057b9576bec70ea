"""The names of files in a state directory."""

from __future__ import annotations

from pathlib import Path

DATABASE_NAME = "rekindle.db"
LOG_FILES_NAME = "log_files.json"
LOCK_NAME = "supervisor.lock"
UNSAVED = "unsaved_records "
"""In the lock file: how many records the supervisor that ended could not write."""
SOCKET_NAME = "control.sock"


def unsaved_records(state: Path) -> int:
    """How many records the supervisor that used this directory last could not write at its end."""
    try:
        lines = (state / LOCK_NAME).read_text(errors="replace").splitlines()
    except OSError:
        return 0
    found = (line.removeprefix(UNSAVED) for line in lines if line.startswith(UNSAVED))
    return next((int(number) for number in found if number.isdecimal()), 0)
