"""The HTTP status and problem for each error."""

from __future__ import annotations

from dataclasses import dataclass

from loguru import logger

from ...errors import (
    ConfigurationError,
    PausedError,
    PayloadError,
    RekindleError,
    RequestTimeoutError,
    SpecError,
    StoreError,
    UnknownBatchError,
    UnknownDeathError,
    UnknownJobError,
    UnknownQueueError,
    UnknownWorkerError,
)
from ..serving.call_pools import CallTimeoutError, PoolFullError, PoolsClosedError
from ..serving.event_hub import StreamsFullError
from ..serving.json_values import ProblemDocument
from .audit_trail import NotAllowedError
from .request_bodies import InvalidRequestError


@dataclass(frozen=True, slots=True)
class Refusal:
    """A status and the problem to send with it."""

    status: int
    problem: ProblemDocument


def problem_for(error: Exception, what: str) -> Refusal:
    """The response to an error; an unexpected one is logged, with `what` failed."""
    status, code, message = _expected(error) or _unexpected(error, what)
    return Refusal(status, ProblemDocument(code, message))


def _expected(error: Exception) -> tuple[int, str, str] | None:
    match error:
        case InvalidRequestError(status=status, error=code):
            return status, code, str(error)
        case UnknownWorkerError():
            return 404, "unknown_worker", str(error)
        case UnknownJobError() | UnknownBatchError():
            return 404, "unknown_job", str(error)
        case UnknownQueueError():
            return 404, "unknown_queue", str(error)
        case UnknownDeathError():
            return 404, "unknown_death", str(error)
        case PausedError(everything=everything):
            return 409, "everything_paused" if everything else "worker_paused", str(error)
        case NotAllowedError():
            return 403, "forbidden", str(error)
        case PayloadError() | SpecError() | ConfigurationError():
            return 422, "invalid", str(error)
        case RequestTimeoutError():
            return 504, "timeout", f"the supervisor did not reply in time: {error}"
        case StoreError():
            return 503, "store_unavailable", str(error)
        case PoolFullError():
            return 503, "busy", "too many requests of this kind are in progress; nothing was done"
        case StreamsFullError():
            return 503, "busy", "too many event streams, or the supervisor is shutting down"
        case CallTimeoutError():
            return 504, "timeout", "no reply in time; the request may still be carried out"
        case PoolsClosedError():
            return 503, "stopping", "the supervisor is shutting down; the request may still be carried out"
        case _:
            return None


def _unexpected(error: Exception, what: str) -> tuple[int, str, str]:
    if isinstance(error, RekindleError):
        return 409, "refused", str(error)
    logger.opt(exception=error).error("api: {} failed", what)
    return 500, "internal", "internal error; the supervisor's log has the details"
