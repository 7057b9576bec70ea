"""Runs handlers; every command leaves an audit entry: who, when, what, and the result."""

from __future__ import annotations

import time
from contextvars import ContextVar
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import msgspec
from loguru import logger
from msgspec.structs import replace

from ...errors import RekindleError, RequestTimeoutError, StoreError
from ...facts.audit_entry import AuditEntry, AuditResult
from ..operator import Operator
from ..serving.peer import Peer
from ..serving.repeated_log import RepeatedCount
from .route import Request, Route

CONTROL = "control"
"""The control socket's name in audit entries."""

_LONGEST_CLAIM = 64
_LONGEST_REASON = 500

_refused: WeakKeyDictionary[Operator, RepeatedCount] = WeakKeyDictionary()
"""Orders of clients that may only read, by operator: a client must not fill the audit log with them."""


@dataclass(frozen=True, slots=True)
class Client:
    """The sender of a request: as the kernel identifies it, and as it identifies itself."""

    peer: Peer | None
    claimed_user: str | None
    gateway: str = CONTROL
    may_order: bool = True
    """Whether it may send commands; otherwise it may only read."""
    reason: str | None = None
    """Why it gives its orders, if it says so."""


sender: ContextVar[Client | None] = ContextVar("sender", default=None)
"""Who has sent the command that is being carried out."""


class NotAllowedError(RekindleError):
    """The client may not send this command."""


def handle(route: Route, request: Request, client: Client) -> object:
    """The handler's result; a command is audited, whether it succeeds or not."""
    return _audited(route, request, client) if route.action else route.handler(request)


def _audited(route: Route, request: Request, client: Client) -> object:
    at_wall_ms = time.time_ns() // 1_000_000
    result, reason = AuditResult.UNKNOWN, ""
    try:
        if not client.may_order:
            raise NotAllowedError("read-only access: commands require the operator token")
        if route.local and client.gateway != CONTROL:
            raise NotAllowedError(f"{route.action} is accepted only on the control socket")
        token = sender.set(client)
        try:
            answer = route.handler(request)
        finally:
            sender.reset(token)
        result = AuditResult.DONE
    except Exception as error:
        result, reason = _audit_result(error), str(error) or type(error).__name__
        raise
    finally:
        _record(
            request,
            client,
            AuditEntry(
                at_wall_ms=at_wall_ms,
                gateway=client.gateway,
                uid=client.peer.uid if client.peer else None,
                pid=client.peer.pid if client.peer else None,
                claimed_user=client.claimed_user,
                action=route.action,
                target=request.target,
                detail=_detail(request, client.reason),
                result=result,
                reason=reason,
            ),
        )
    return answer


def claim(header: str | None, longest: int = _LONGEST_CLAIM) -> str | None:
    """The user that the client claims to act for, made safe to persist and show."""
    if header is None:
        return None
    return "".join(char for char in header if char.isprintable())[:longest] or None


def reason_of(header: str | None) -> str | None:
    """The reason that a client gives for its order, made safe likewise."""
    return claim(header, _LONGEST_REASON)


def _audit_result(error: Exception) -> AuditResult:
    if isinstance(error, RequestTimeoutError | StoreError) or not isinstance(error, RekindleError):
        return AuditResult.UNKNOWN
    return AuditResult.REFUSED


def _detail(request: Request, reason: str | None) -> str:
    audited = getattr(request.arguments, "audited", None)
    given = msgspec.to_builtins(request.arguments) if audited is None else audited()
    if reason is not None:
        given = {"reason": reason, **(given or {})}
    return msgspec.json.encode(given).decode() if given else ""


def _record(request: Request, client: Client, entry: AuditEntry) -> None:
    if not client.may_order:
        left_out = _refused.setdefault(request.operator, RepeatedCount()).counted(client.gateway)
        if left_out is None:
            return
        if left_out:
            entry = replace(entry, reason=f"{entry.reason} ({left_out} more orders were refused before)")
    try:
        request.operator.audit(entry)
    except Exception as error:  # noqa: BLE001  # the command was carried out; the response must still go out
        logger.error("audit: the store did not take an entry: {}: {!r}", entry, error)
