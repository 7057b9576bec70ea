"""Orders are carried out here, and each leaves an entry: who, when, what, and what came of it."""

from __future__ import annotations

import time
from dataclasses import dataclass

import msgspec
from loguru import logger

from ...errors import RekindleError, RequestTimeoutError, StoreError
from ...facts.audit_entry import AuditEntry, AuditResult
from ..serving.http_protocol import Peer
from .route import Asked, Served

CONTROL = "control"
"""The gateway that the control socket is."""

_LONGEST_CLAIM = 64


@dataclass(frozen=True, slots=True)
class Client:
    """Who asks: what the kernel says, and what the client says."""

    peer: Peer | None
    claimed_user: str | None
    gateway: str = CONTROL
    may_order: bool = True
    """Whether it may change anything; else it may only look."""


class NotAllowedError(RekindleError):
    """The client may only look."""


def answered(route: Served, asked: Asked, client: Client) -> object:
    """What the route answers; an order is noted, whatever comes of it."""
    return carry_out(route, asked, client) if route.action else route.answer(asked)


def carry_out(route: Served, asked: Asked, client: Client) -> object:
    """Give the order and note what came of it; its answer, or what it raised."""
    at_wall_ms = time.time_ns() // 1_000_000
    result, reason = AuditResult.UNKNOWN, ""
    try:
        if not client.may_order:
            raise NotAllowedError("you may only look here: orders need the operator's token")
        if route.local and client.gateway != CONTROL:
            raise NotAllowedError(f"{route.action} is an order for the control socket only")
        answer = route.answer(asked)
        result = AuditResult.DONE
    except Exception as error:
        result, reason = _verdict(error), str(error) or type(error).__name__
        raise
    finally:
        _note(
            asked,
            AuditEntry(
                at_wall_ms=at_wall_ms,
                gateway=client.gateway,
                uid=client.peer.uid if client.peer else None,
                pid=client.peer.pid if client.peer else None,
                claimed_user=client.claimed_user,
                action=route.action,
                target=asked.target,
                detail=_detail(asked),
                result=result,
                reason=reason,
            ),
        )
    return answer


def claim(header: str | None) -> str | None:
    """Who the client says that it acts for, fit to be kept and shown."""
    if header is None:
        return None
    return "".join(char for char in header if char.isprintable())[:_LONGEST_CLAIM] or None


def _verdict(error: Exception) -> AuditResult:
    if isinstance(error, RequestTimeoutError | StoreError) or not isinstance(error, RekindleError):
        return AuditResult.UNKNOWN
    return AuditResult.REFUSED


def _detail(asked: Asked) -> str:
    audited = getattr(asked.arguments, "audited", None)
    given = msgspec.to_builtins(asked.arguments) if audited is None else audited()
    return msgspec.json.encode(given).decode() if given else ""


def _note(asked: Asked, entry: AuditEntry) -> None:
    try:
        asked.operator.audit(entry)
    except Exception as error:  # noqa: BLE001  # the order was given; its answer must still go out
        logger.error("an order could not be noted for the audit: {}: {!r}", entry, error)
