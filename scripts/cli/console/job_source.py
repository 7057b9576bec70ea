"""Who answers for the queues: the supervisor, over its socket, or the database where none runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from ..client import ControlClient, ControlError, RequestRefusedError, path_of
from .database_fallback import database_to_ask, in_the_client_s_words
from .options import client_of

MOST_AT_ONCE = 1000
LARGEST_BODY = 1_500_000
"""How much is sent at once; the server takes a little more."""


class Desk(Protocol):
    """Answers with the documents of the control socket, whoever is behind it."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def enqueue(self, queue: str, payloads: Sequence[Any], settings: Mapping[str, Any]) -> list[int]:
        """Put jobs into a queue; their numbers."""
        ...

    def find(self, *, queue: str | None, state: str | None, limit: int, evidence: bool = False) -> Any:
        """Some jobs."""

    def get(self, job: int) -> Any:
        """One job."""

    def stats(self) -> Any:
        """The figures of the queues."""

    def order(self, job: int, order: str) -> None:
        """Retry or drop a job."""


def desk_of(state: Path, database: str | None) -> Desk:
    """The supervisor's desk if one runs; else the database's, if that can be found.

    Raises:
        NoSupervisorError: neither is there.
    """
    client = client_of(state)
    where = database_to_ask(client, state, database)
    return SocketDesk(client) if where is None else DatabaseDesk(where)


class SocketDesk:
    """Asks a running supervisor."""

    def __init__(self, client: ControlClient) -> None:
        self._client = client

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def enqueue(self, queue: str, payloads: Sequence[Any], settings: Mapping[str, Any]) -> list[int]:
        """Put jobs into a queue, some at a time."""
        ids: list[int] = []
        for some in _in_bodies(payloads):
            body = {"payloads": some, **settings}
            try:
                answer = self._client.post(path_of("queues", queue, "jobs"), body)
            except ControlError as error:
                if ids:
                    raise RequestRefusedError(f"{error}; {len(ids)} jobs were enqueued before") from None
                raise
            ids += answer["detail"]["ids"]
        return ids

    def find(self, *, queue: str | None, state: str | None, limit: int, evidence: bool = False) -> Any:
        """Some jobs."""
        from urllib.parse import urlencode

        query: dict[str, object] = {"limit": limit, "evidence": str(evidence).lower()}
        query |= {} if queue is None else {"queue": queue}
        query |= {} if state is None else {"state": state}
        return self._client.get("/jobs?" + urlencode(query))

    def get(self, job: int) -> Any:
        """One job."""
        return self._client.get(path_of("jobs", str(job)))

    def stats(self) -> Any:
        """The figures of the queues."""
        return self._client.get("/queues")

    def order(self, job: int, order: str) -> None:
        """Retry or drop a job."""
        self._client.post(path_of("jobs", str(job), order))


class DatabaseDesk:
    """Works on the database itself: nobody supervises anything, and nobody is asked."""

    def __init__(self, where: str) -> None:
        # SQLAlchemy takes half a second to load: not before it is needed.
        from rekindle.persistence import open_past, open_queue

        with in_the_client_s_words():
            open_past(where).close()  # one that is not there is not made, nor an older one changed
            self._queue = open_queue(where)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._queue.close()

    def enqueue(self, queue: str, payloads: Sequence[Any], settings: Mapping[str, Any]) -> list[int]:
        """Put jobs into a queue, all or none."""
        from rekindle.actors.gateways.api.job_handlers import enqueued
        from rekindle.actors.gateways.api.request_bodies import EnqueueArguments

        with in_the_client_s_words():
            given = EnqueueArguments(payloads=list(payloads), **settings)
            return list(enqueued(self._queue, queue, self._queue.served(), given))

    def find(self, *, queue: str | None, state: str | None, limit: int, evidence: bool = False) -> Any:
        """Some jobs."""
        from rekindle.actors.gateways.api.job_handlers import job_list

        with in_the_client_s_words():
            found = job_list(self._queue, queue=queue, state=state, limit=limit, evidence=evidence)
        return _builtins(found)

    def get(self, job: int) -> Any:
        """One job."""
        from rekindle.actors.gateways.api.job_handlers import job_detail

        with in_the_client_s_words():
            return _builtins(job_detail(self._queue, job))

    def stats(self) -> Any:
        """The figures of the queues."""
        from rekindle.actors.gateways.api.job_handlers import figures

        with in_the_client_s_words():
            return _builtins(figures(self._queue, self._queue.served()))

    def order(self, job: int, order: str) -> None:
        """Retry or drop a job."""
        with in_the_client_s_words():
            self._queue.retry([job]) if order == "retry" else self._queue.drop([job])


def _builtins(document: object) -> Any:
    import msgspec

    return msgspec.to_builtins(document)


def _in_bodies(payloads: Sequence[Any]) -> Iterator[list[Any]]:
    """The payloads in lots that fit into one request."""
    import json

    lot: list[Any] = []
    size = 0
    for payload in payloads:
        length = len(json.dumps(payload)) + 2
        if lot and (len(lot) == MOST_AT_ONCE or size + length > LARGEST_BODY):
            yield lot
            lot, size = [], 0
        lot.append(payload)
        size += length
    if lot:
        yield lot
