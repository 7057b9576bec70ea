"""The identity of a server."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


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
