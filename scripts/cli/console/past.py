"""Who tells the past: the supervisor, over its socket, or the database where none runs.

The database is asked by the same routes, and answers with the same documents.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from ..client import NoSupervisorError, Reader, UnknownWorkerError
from .database_fallback import database_to_ask, in_the_client_s_words
from .exits import say
from .options import client_of

if TYPE_CHECKING:
    from rekindle.actors.gateways.api.route import Served
    from rekindle.actors.gateways.operator import Operator

    from .stored_past import StoredPast

REMEMBERED = frozenset(
    {
        "/alerts",
        "/audit",
        "/events/log",
        "/workers/{id}/bundles",
        "/workers/{id}/bundles/{generation}",
        "/workers/{id}/history",
        "/workers/{id}/timeline",
    }
)
"""What can be told without a supervisor."""


@contextmanager
def past_of(state: Path, database: str | None) -> Iterator[Reader]:
    """The supervisor if one runs; else its database, if that can be found.

    Raises:
        NoSupervisorError: neither is there.
    """
    client = client_of(state)
    where = database_to_ask(client, state, database)
    if where is None:
        yield client
        return
    if database is None:
        say(f"no supervisor runs; this is what {where} remembers")
    # SQLAlchemy takes half a second to load: not before it is needed.
    from rekindle.persistence import open_past

    from .stored_past import StoredPast

    with in_the_client_s_words():
        stored = StoredPast(open_past(where))
    with closing(stored):
        yield Past(stored, state)


class Past:
    """What a database remembers; nobody supervises anything, and nobody is asked."""

    def __init__(self, stored: StoredPast, state: Path) -> None:
        self._stored = stored
        self._state = state

    def get(self, path: str) -> Any:
        """What the supervisor's own route would answer.

        Raises:
            UnknownWorkerError: nothing is remembered of that worker.
            NoSupervisorError: only a supervisor could tell.
        """
        from rekindle.actors import errors

        split = urlsplit(path)
        with in_the_client_s_words():
            if split.path == "/workers":
                return {"workers": [{"component_id": id_} for id_ in self._stored.known()]}
            try:
                return self._answer(split.path, parse_qsl(split.query))
            except errors.UnknownWorkerError as error:
                meant = f"; did you mean {' or '.join(error.near)}?" if error.near else ""
                message = f"nothing is remembered of {error.component_id!r}{meant}"
                raise UnknownWorkerError(message, "unknown_worker", 404) from None

    def _answer(self, path: str, query: list[tuple[str, str]]) -> Any:
        import msgspec

        from rekindle.actors.gateways.api.request_bodies import decode_query, generation_of
        from rekindle.actors.gateways.api.route import Asked
        from rekindle.actors.gateways.server_identity import Identity

        served, named = _route(path)
        target, *number = named or [""]
        operator = cast("Operator", self._stored)  # those of its methods that look
        served.check(target, operator)
        identity = Identity("", os.getpid(), time.time_ns() // 1_000_000, self._state)
        arguments = decode_query(query, served.query)
        asked = Asked(operator, identity, target, arguments, *map(generation_of, number))
        return msgspec.to_builtins(served.answer(asked))


def _route(path: str) -> tuple[Served, list[str]]:
    from rekindle.actors.gateways.api.routes import ROUTES

    for served in ROUTES:
        found = re.fullmatch(re.sub(r"\{\w+\}", "([^/]+)", served.path), path)
        if found is not None and served.path in REMEMBERED:
            return served, [unquote(part) for part in found.groups()]
    raise NoSupervisorError("no supervisor runs, and only that could tell", "no_supervisor")
