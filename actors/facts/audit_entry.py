"""What is kept of every order that an operator gave: who, when, what, and what came of it."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class AuditResult(StrEnum):
    """What came of an order."""

    DONE = "done"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    """No answer came in time, or something broke: it may have been carried out, or may still be."""


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One order, once it was answered. Times are wall-clock milliseconds."""

    at_wall_ms: int
    """When the order was given."""
    gateway: str
    """Where it came in: control."""
    uid: int | None
    """The user who gave it, as the kernel says; None where it cannot say."""
    pid: int | None
    """The process that gave it, as the kernel says."""
    claimed_user: str | None
    """Who the client says that it acts for. Nobody has checked it."""
    action: str
    """restart, stop, start, reset, pause, resume, reload, scale or rolling_restart."""
    target: str
    """A worker's id, a group's name, or nothing: the whole system."""
    detail: str
    """The order's arguments as JSON; empty without any."""
    result: AuditResult
    reason: str
    """Why it was refused, or what is not known; empty when it was done."""
