"""Which answer each thing that goes wrong gets."""

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
    UnknownDeathError,
    UnknownJobError,
    UnknownQueueError,
    UnknownWorkerError,
)
from ..serving.call_pools import LaneFullError, LanesClosedError, LaneSlowError
from ..serving.event_hub import StreamsFullError
from ..serving.json_values import Problem
from .audit_trail import NotAllowedError
from .request_bodies import InvalidRequestError


@dataclass(frozen=True, slots=True)
class Refusal:
    """A status and the problem to send with it."""

    status: int
    problem: Problem


def refusal(error: Exception) -> Refusal | None:
    """What to answer; None if nobody foresaw this error."""
    match error:
        case InvalidRequestError(status=status, error=word):
            return _refusal(status, word, str(error))
        case UnknownWorkerError():
            return _refusal(404, "unknown_worker", str(error))
        case UnknownJobError():
            return _refusal(404, "unknown_job", str(error))
        case UnknownQueueError():
            return _refusal(404, "unknown_queue", str(error))
        case PausedError(everything=everything):
            return _refusal(409, "everything_paused" if everything else "worker_paused", str(error))
        case PayloadError():
            return _refusal(422, "invalid", str(error))
        case NotAllowedError():
            return _refusal(403, "forbidden", str(error))
        case UnknownDeathError():
            return _refusal(404, "unknown_death", str(error))
        case SpecError() | ConfigurationError():
            return _refusal(422, "invalid", str(error))
        case RequestTimeoutError():
            return _refusal(504, "timeout", f"the supervisor did not answer in time: {error}")
        case StoreError():
            return _refusal(503, "store_unavailable", str(error))
        case LaneFullError():
            return _refusal(503, "busy", "too many requests like this one are under way; nothing was done")
        case StreamsFullError():
            return _refusal(503, "busy", "as many clients as may follow the events already, or we stop")
        case LaneSlowError():
            return _refusal(504, "timeout", "no answer in time; the request may still be carried out")
        case LanesClosedError():
            return _refusal(503, "stopping", "the supervisor is stopping; the request may be carried out")
        case _:
            return None


def verdict(error: Exception, what: str) -> Refusal:
    """What to answer, whatever it is; what nobody foresaw is logged as having broken `what`."""
    found = refusal(error)
    if found is not None:
        return found
    if isinstance(error, RekindleError):
        return declined(error)
    logger.opt(exception=error).error("{} broke", what)
    return broken()


def declined(error: Exception) -> Refusal:
    """What to answer when the operator said no."""
    return _refusal(409, "refused", str(error))


def broken() -> Refusal:
    """What to answer when something is wrong with us."""
    return _refusal(500, "internal", "something broke while this was done; the supervisor's log has more")


def _refusal(status: int, word: str, message: str) -> Refusal:
    return Refusal(status, Problem(word, message))
