"""The names of files in a state directory."""

from __future__ import annotations

DATABASE_NAME = "rekindle.db"
LOG_FILES_NAME = "log_files.json"
LOCK_NAME = "supervisor.lock"
SOCKET_NAME = "control.sock"
