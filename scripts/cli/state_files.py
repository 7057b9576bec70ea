"""The names of files in a state directory."""

from __future__ import annotations

DATABASE_NAME = "rekindle.db"
LOCK_NAME = "supervisor.lock"
SOCKET_NAME = "control.sock"
