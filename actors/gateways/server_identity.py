"""What a server tells about itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Identity:
    """What a server says of itself."""

    version: str
    pid: int
    started_at_wall_ms: int
    state_directory: Path
    dashboard: str | None = None
    """Where the dashboard is, if there is one."""
