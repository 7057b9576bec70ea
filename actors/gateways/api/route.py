"""A route, and a request once it is decoded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...errors import UnknownQueueError, UnknownWorkerError
from ...spec.worker_spec import COMPONENT_ID
from ..operator import Operator
from ..server_identity import Identity
from ..serving.call_pools import CallPool
from .request_bodies import LARGEST_BODY, InvalidRequestError, Nothing

PREFIX = "/api/v1"


@dataclass(frozen=True, slots=True)
class Request:
    """One decoded request."""

    operator: Operator
    identity: Identity
    target: str
    """The worker id, group, queue or number in the path; empty without one."""
    arguments: Any
    generation: int = 0
    """The incarnation in the path; 0 without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One route: its arguments, its handler, its result."""

    method: str = "GET"
    path: str
    summary: str
    handler: Callable[[Request], object]
    result: Any
    pool: CallPool = CallPool.QUERY
    body: type[Any] = Nothing
    query: type[Any] = Nothing
    largest_body: int = LARGEST_BODY
    action: str = ""
    """The command's name in the audit; empty: the route only reads."""
    local: bool = False
    """Whether only the control socket accepts it, since a remote client could not undo it."""
    streams: bool = False
    """The response is an endless stream of events."""
    media_type: str = ""
    """The media type if the handler returns bytes; empty: the response is JSON."""
    at_root: bool = False
    """Whether the path has no prefix, because other programs expect it there."""

    def check(self, target: str, operator: Operator) -> None:
        """Refuse a target that cannot be a name.

        Raises:
            UnknownQueueError, UnknownWorkerError, InvalidRequestError: no such name is possible.
        """
        if not target or COMPONENT_ID.fullmatch(target) is not None:
            return
        match self.path.split("/")[1]:
            case "queues":
                raise UnknownQueueError(target, operator.queues)
            case "workers" | "groups":
                raise UnknownWorkerError(target[:80])
            case _:
                raise InvalidRequestError(422, "invalid", f"{target[:80]!r} is not a valid name")

    @property
    def url(self) -> str:
        """The path with its prefix."""
        return self.path if self.at_root else PREFIX + self.path
