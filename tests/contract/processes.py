"""Other Python processes that open a store, as a second supervisor would."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import rekindle.persistence

_IMPORT_ROOT = str(Path(rekindle.persistence.__path__[0]).parents[1])

OPEN_AND_TELL = """
import sys
from rekindle.actors.errors import StoreError
from rekindle.persistence import open_store
mode, where = sys.argv[1:]
sys.stdin.readline()
try:
    store = open_store(where, exclusive=mode == "exclusive")
except StoreError as error:
    print(f"{type(error).__name__}: {error}", flush=True)
else:
    print("open", "alembic.command" in sys.modules, flush=True)
    sys.stdin.readline()
"""
"""Waits for a line, opens the store, tells how that went, and keeps it open until the next line."""


class Opener:
    """A process that opens a store on command."""

    def __init__(self, where: str, *, exclusive: bool = True) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", OPEN_AND_TELL, "exclusive" if exclusive else "shared", where],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": _IMPORT_ROOT},
        )

    def go(self) -> None:
        """Let it take its next step."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def told(self) -> str:
        """What it printed about opening the store."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self) -> None:
        """Let it close the store by ending, and reap it."""
        self.process.communicate("\n", timeout=30)
