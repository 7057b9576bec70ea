"""Pure: the internal words for a worker's health."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """The internal words for a worker's health."""

    PENDING = "pending"
    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"
    RECOVERING = "recovering"
    DEAD = "dead"
    FAILED = "failed"
