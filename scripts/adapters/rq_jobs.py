"""An example: jobs for RQ. Nothing of it is about Rekindle; the worker class in `rq.toml` is."""

from __future__ import annotations

import os
import signal


def report(file: str) -> str:
    """Write a line."""
    with open(file, "a") as lines:
        lines.write(f"done by {os.getpid()}\n")
    return file


def crash() -> None:
    """Kill the worker, as a bug in a C extension would."""
    os.kill(os.getpid(), signal.SIGKILL)
