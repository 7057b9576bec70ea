"""Pure: what one event says, and how much it matters."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Level(StrEnum):
    """How much an event matters."""

    TRACE = "trace"
    """Another event says the same: views of several events leave it out."""
    DEBUG = "debug"
    INFO = "info"
    SUCCESS = "success"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


class Sentence(msgspec.Struct, frozen=True):
    """What one event says."""

    kind: str
    """start, health, lost, death, decision, failed, stop, signal, pause, reset, recycle, job, resource,
    sample, alert, breaker, group, rollout, store, gateway, internal, gap or other."""
    text: str
    level: Level = Level.INFO
