"""Where commands read persisted data: the supervisor, or its database if none is running.

Both take the same paths and answer with the same documents.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from ..client import NoSupervisorError, Reader, RemoteAddress, UnknownTargetError
from .clock import now_ms
from .database_fallback import as_control_errors, database_to_read
from .exits import say
from .options import Where, client_of

if TYPE_CHECKING:
    from rekindle.actors.gateways.api.route import Route
    from rekindle.actors.gateways.operator import Operator

    from .stored_past import StoredPast

READABLE = frozenset(
    {
        "/alerts",
        "/audit",
        "/events/log",
        "/workers/{id}/bundles",
        "/workers/{id}/bundles/{generation}",
        "/workers/{id}/history",
        "/workers/{id}/runs",
        "/workers/{id}/timeline",
    }
)
"""The routes that need no running supervisor."""


@contextmanager
def open_database(state: Path, where: str) -> Iterator[DatabaseReader]:
    """A reader of a database that no supervisor uses."""
    # Imported here because SQLAlchemy takes half a second to load.
    from rekindle.persistence import open_past

    from .stored_past import StoredPast

    spool = state / "unsaved" if "://" in where else None
    with as_control_errors():
        store = open_past(where, spool=spool)
        stored = StoredPast(store)
    for file in store.waiting_files():
        say(f"the last records are not in it yet; the next start stores them: {file}")
    with closing(stored):
        yield DatabaseReader(stored, state)


@contextmanager
def open_reader(state: Where, database: str | None) -> Iterator[Reader]:
    """A reader of the running supervisor; if there is none, of its database.

    Raises:
        NoSupervisorError: there is neither a supervisor nor a database.
    """
    client = client_of(state)
    where = database_to_read(client, state, database)
    if where is None or isinstance(state, RemoteAddress):
        yield client
        return
    if database is None:
        say(f"no supervisor is running; reading {where}")
    with open_database(state, where) as reader:
        yield reader


class DatabaseReader:
    """Answers from a database that no supervisor uses."""

    def __init__(self, stored: StoredPast, state: Path) -> None:
        self._stored = stored
        self._state = state

    def get(self, path: str) -> Any:
        """The document that the supervisor's route would return.

        Raises:
            UnknownTargetError: the database has no records of that worker.
            NoSupervisorError: the route needs a running supervisor.
        """
        from rekindle.actors import errors

        split = urlsplit(path)
        with as_control_errors():
            if split.path == "/workers":
                return {"workers": [{"component_id": id_} for id_ in self._stored.known()]}
            try:
                return self._answer(split.path, parse_qsl(split.query))
            except errors.UnknownWorkerError as error:
                hint = f"; did you mean {' or '.join(error.near)}?" if error.near else ""
                message = f"the database has no records of {error.component_id!r}{hint}"
                raise UnknownTargetError(message, "unknown_worker", 404) from None

    def last_known(self) -> dict[str, Any]:
        """What the former supervisor persisted of each worker."""
        with as_control_errors():
            return {"running": False, "workers": self._stored.workers()}

    def _answer(self, path: str, query: list[tuple[str, str]]) -> Any:
        import msgspec

        from rekindle.actors.gateways.api.request_bodies import decode_query, generation_of
        from rekindle.actors.gateways.api.route import Request
        from rekindle.actors.gateways.server_identity import Identity

        route, named = _route(path)
        target, *number = named or [""]
        operator = cast("Operator", self._stored)  # these routes call read methods only
        route.check(target, operator)
        identity = Identity("", os.getpid(), now_ms(), self._state)
        arguments = decode_query(query, route.query)
        request = Request(operator, identity, target, arguments, *map(generation_of, number))
        return msgspec.to_builtins(route.handler(request))


def _route(path: str) -> tuple[Route, list[str]]:
    from rekindle.actors.gateways.api.routes import ROUTES

    for route in ROUTES:
        found = re.fullmatch(re.sub(r"\{\w+\}", "([^/]+)", route.path), path)
        if found is not None and route.path in READABLE:
            return route, [unquote(part) for part in found.groups()]
    raise NoSupervisorError(
        "no supervisor is running, and only a running one can answer this", "no_supervisor"
    )
