"""The audit log: who gave which command, when, and with which result."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class AuditResult(StrEnum):
    """The result of a command."""

    DONE = "done"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    """No reply in time, or an internal error: the command may have been carried out, or may still be."""


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One command, recorded after its reply. Times are wall-clock milliseconds."""

    at_wall_ms: int
    """When the command arrived."""
    gateway: str
    """The gateway that received it: control."""
    uid: int | None
    """The user who sent it, according to the kernel; None if not known."""
    pid: int | None
    """The process that sent it, according to the kernel."""
    claimed_user: str | None
    """The user that the client claims to act for; not verified."""
    action: str
    """restart, stop, start, reset, signal, pause, resume, reload, scale or rolling_restart."""
    target: str
    """A worker's id or a group's name; empty for the whole system."""
    detail: str
    """The command's arguments as JSON; empty without any."""
    result: AuditResult
    reason: str
    """Why it was refused or its result is unknown; empty when done."""
