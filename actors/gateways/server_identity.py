"""The identity of a server."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from rekindle import __version__


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity that a server reports."""

    version: str
    pid: int
    started_at_wall_ms: int
    state_directory: Path
    dashboard: str | None = None
    """The URL of the dashboard, if there is one."""
    has_probes: bool = False
    """Whether it serves the probes of orchestrators beside the table of routes."""


def identity(directory: Path, dashboard: str | None, *, has_probes: bool = False) -> Identity:
    """The identity of a server of this process."""
    started = time.time_ns() // 1_000_000
    return Identity(__version__, os.getpid(), started, directory.absolute(), dashboard, has_probes)
