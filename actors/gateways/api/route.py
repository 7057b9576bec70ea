"""What a route is, and what a request looks like once it was decoded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...errors import UnknownQueueError, UnknownWorkerError
from ...spec.worker_spec import COMPONENT_ID
from ..operator import Operator
from ..server_identity import Identity
from ..serving.call_pools import Lane
from .request_bodies import LARGEST_BODY, InvalidRequestError, Nothing

PREFIX = "/api/v1"


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, decoded: of whom, about what, with which arguments."""

    operator: Operator
    identity: Identity
    target: str
    """The worker's id or the group's name in the path; empty without one."""
    arguments: Any
    generation: int = 0
    """The incarnation in the path; 0 without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """One route: what it takes, who answers it, and what it answers with."""

    method: str = "GET"
    path: str
    summary: str
    answer: Callable[[Asked], object]
    result: Any
    lane: Lane = Lane.SIGHT
    body: type[Any] = Nothing
    query: type[Any] = Nothing
    largest_body: int = LARGEST_BODY
    action: str = ""
    """What the audit calls it; empty: it changes nothing."""
    local: bool = False
    """Whether only the control socket takes it: from afar nobody could undo it."""
    streams: bool = False
    """The answer is a stream of events, and has no end."""
    text: str = ""
    """The media type of an answer that is bytes as they are; empty: it is JSON."""
    rooted: bool = False
    """Whether its path stands by itself, where others look for it."""

    def check(self, target: str, operator: Operator) -> None:
        """Refuse what nothing can be called.

        Raises:
            UnknownQueueError, UnknownWorkerError, InvalidRequestError: it is no name at all.
        """
        if not target or COMPONENT_ID.fullmatch(target) is not None:
            return
        match self.path.split("/")[1]:
            case "queues":
                raise UnknownQueueError(target, operator.queues)
            case "workers" | "groups":
                raise UnknownWorkerError(target[:80])
            case _:
                raise InvalidRequestError(422, "invalid", f"nothing here is called {target[:80]!r}")

    @property
    def url(self) -> str:
        """Where it is served."""
        return self.path if self.rooted else PREFIX + self.path
