"""Pure: how firmly a process is stopped."""

from __future__ import annotations

from enum import IntEnum


class Urgency(IntEnum):
    """How firmly a process is stopped; a firmer request shortens a gentler one."""

    GRACEFUL = 0
    """Ask first, and let it finish what it does."""
    FIRM = 1
    """It is taken for dead or stuck: SIGTERM (or what its policy says), then SIGKILL."""
    KILL = 2
    """At once."""
