"""Pure: a worker's health, and the one word for its state that status views show."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """A worker's health, as the HealthMonitor sees it."""

    PENDING = "pending"
    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"
    RECOVERING = "recovering"
    DEAD = "dead"
    FAILED = "failed"


class ShownStatus(StrEnum):
    """The state of a worker in one word, as status views, topics and metrics show it."""

    STARTING = "starting"
    HEALTHY = "healthy"
    STOPPING = "stopping"
    STOPPED = "stopped"
    CRASHED = "crashed"
    FAILED = "failed"
    DONE = "done"
    SCHEDULED = "scheduled"
    """Between two runs of its schedule."""
