"""Where `rekindle jobs` reads and writes jobs: the supervisor, or the database if none is running."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol, Self

from ..client import ControlClient, ControlError, OrderRefusedError, path_of
from .database_fallback import as_control_errors, database_to_read
from .options import Where, client_of

MOST_AT_ONCE = 1000
LARGEST_BODY = 1_500_000
"""The size of one request; the server accepts a little more."""


class JobSource(Protocol):
    """The jobs; every answer is a document of the control socket's API."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def enqueue(self, queue: str, payloads: Sequence[Any], settings: Mapping[str, Any]) -> Any:
        """Enqueue jobs; returns their ids, and those of them that were there already, by their keys."""
        ...

    def enqueue_batch(self, queue: str, payloads: Sequence[Any], settings: Mapping[str, Any]) -> Any:
        """Enqueue jobs as a batch; returns its number, their ids and that of the job at its end."""

    def find(self, *, queue: str | None, state: str | None, limit: int, evidence: bool = False) -> Any:
        """The jobs that match, the latest first."""

    def get(self, job: int) -> Any:
        """One job."""

    def stats(self) -> Any:
        """The counts of every queue."""

    def periodic(self) -> Any:
        """The periodic jobs."""

    def batches(self, limit: int) -> Any:
        """The latest batches."""

    def batch(self, number: int) -> Any:
        """One batch."""

    def order(self, job: int, order: str) -> Any:
        """Retry, cancel or drop a job; the details of the answer."""

    def pause_queue(self, queue: str, reason: str, for_s: float | None) -> None:
        """Start no further job of a queue."""

    def resume_queue(self, queue: str) -> bool:
        """End the pause of a queue; False if there was none."""
        ...


def open_job_source(state: Where, database: str | None) -> JobSource:
    """The jobs of the running supervisor; if there is none, those of the database.

    Raises:
        NoSupervisorError: there is neither a supervisor nor a database.
    """
    client = client_of(state)
    where = database_to_read(client, state, database)
    return SupervisorJobs(client) if where is None else DatabaseJobs(where)


class SupervisorJobs:
    """The jobs of a running supervisor, over its control socket."""

    def __init__(self, client: ControlClient) -> None:
        self._client = client

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def enqueue(self, queue: str, payloads: Sequence[Any], settings: Mapping[str, Any]) -> Any:
        """Enqueue jobs, in as many requests as needed."""
        ids: list[int] = []
        existing: list[int] = []
        for some in _in_bodies(payloads):
            body = {"payloads": some, **settings}
            try:
                answer = self._client.post(path_of("queues", queue, "jobs"), body)
            except ControlError as error:
                if ids:
                    raise OrderRefusedError(f"{error}; the first {len(ids)} jobs are enqueued") from None
                raise
            detail = answer["detail"]  # of an older supervisor: without those that were there
            existing += (id_ for id_ in detail.get("existing", ()) if id_ not in (*ids, *existing))
            ids += detail["ids"]
        return {"ids": ids, "existing": existing}

    def enqueue_batch(self, queue: str, payloads: Sequence[Any], settings: Mapping[str, Any]) -> Any:
        """Enqueue a batch, which has to fit into one request."""
        bodies = list(_in_bodies(payloads))
        if len(bodies) > 1:
            raise OrderRefusedError(
                f"a batch through the supervisor has at most {MOST_AT_ONCE} jobs and {LARGEST_BODY} bytes;"
                " `open_queue(url).batch` has no such limit"
            )
        body = {"payloads": list(payloads), **settings}
        return self._client.post(path_of("queues", queue, "batches"), body)["detail"]

    def find(self, *, queue: str | None, state: str | None, limit: int, evidence: bool = False) -> Any:
        """The jobs that match, the latest first."""
        from urllib.parse import urlencode

        query: dict[str, object] = {"limit": limit, "evidence": str(evidence).lower()}
        query |= {} if queue is None else {"queue": queue}
        query |= {} if state is None else {"state": state}
        return self._client.get("/jobs?" + urlencode(query))

    def get(self, job: int) -> Any:
        """One job."""
        return self._client.get(path_of("jobs", str(job)))

    def stats(self) -> Any:
        """The counts of every queue."""
        return self._client.get("/queues")

    def periodic(self) -> Any:
        """The periodic jobs."""
        return self._client.get("/periodic")

    def batches(self, limit: int) -> Any:
        """The latest batches."""
        return self._client.get(f"/batches?limit={limit}")

    def batch(self, number: int) -> Any:
        """One batch."""
        return self._client.get(path_of("batches", str(number)))

    def order(self, job: int, order: str) -> Any:
        """Retry, cancel or drop a job; the details of the answer."""
        return self._client.post(path_of("jobs", str(job), order))["detail"]

    def pause_queue(self, queue: str, reason: str, for_s: float | None) -> None:
        """Start no further job of a queue."""
        self._client.post(path_of("queues", queue, "pause"), {"reason": reason, "for_s": for_s})

    def resume_queue(self, queue: str) -> bool:
        """End the pause of a queue; False if there was none."""
        return bool(self._client.post(path_of("queues", queue, "resume"))["result"] == "done")


class DatabaseJobs:
    """The jobs of a database that no supervisor uses."""

    def __init__(self, where: str) -> None:
        # Imported here because SQLAlchemy takes half a second to load.
        from rekindle.persistence import open_past, open_queue

        with as_control_errors():
            open_past(where).close()  # fails if there is no database or it needs an upgrade; changes nothing
            self._queue = open_queue(where)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._queue.close()

    def enqueue(self, queue: str, payloads: Sequence[Any], settings: Mapping[str, Any]) -> Any:
        """Enqueue jobs in one transaction."""
        import msgspec

        from rekindle.actors.gateways.api.handlers.job_handlers import enqueued
        from rekindle.actors.gateways.api.request_bodies import EnqueueArguments

        with as_control_errors():
            given = msgspec.convert({"payloads": list(payloads), **settings}, EnqueueArguments)
            return enqueued(self._queue, queue, self._queue.served(), given)

    def enqueue_batch(self, queue: str, payloads: Sequence[Any], settings: Mapping[str, Any]) -> Any:
        """Enqueue a batch in one transaction."""
        import msgspec

        from rekindle.actors.gateways.api.handlers.job_handlers import batch_detail, batched
        from rekindle.actors.gateways.api.request_bodies import BatchArguments

        with as_control_errors():
            given = msgspec.convert({"payloads": list(payloads), **settings}, BatchArguments)
            return batch_detail(batched(self._queue, queue, self._queue.served(), given))

    def find(self, *, queue: str | None, state: str | None, limit: int, evidence: bool = False) -> Any:
        """The jobs that match, the latest first."""
        from rekindle.actors.gateways.api.handlers.job_handlers import job_list

        with as_control_errors():
            found = job_list(self._queue, queue=queue, state=state, limit=limit, evidence=evidence)
        return _builtins(found)

    def get(self, job: int) -> Any:
        """One job."""
        from rekindle.actors.gateways.api.handlers.job_handlers import job_detail

        with as_control_errors():
            return _builtins(job_detail(self._queue, job))

    def stats(self) -> Any:
        """The counts of every queue."""
        from rekindle.actors.gateways.api.handlers.job_handlers import figures

        with as_control_errors():
            return _builtins(figures(self._queue, self._queue.served()))

    def periodic(self) -> Any:
        """The periodic jobs."""
        from rekindle.actors.gateways.api.handlers.queue_handlers import periodic_jobs

        with as_control_errors():
            return _builtins(periodic_jobs(self._queue))

    def batches(self, limit: int) -> Any:
        """The latest batches."""
        from rekindle.actors.gateways.api.handlers.queue_handlers import batch_list

        with as_control_errors():
            return _builtins(batch_list(self._queue, limit))

    def batch(self, number: int) -> Any:
        """One batch."""
        from rekindle.actors.gateways.api.handlers.queue_handlers import batch_of

        with as_control_errors():
            return _builtins(batch_of(self._queue, number))

    def order(self, job: int, order: str) -> Any:
        """Retry, cancel or drop a job; the details of the answer."""
        with as_control_errors():
            match order:
                case "retry":
                    self._queue.retry([job])
                case "cancel":
                    return {"state": self._queue.cancel([job])[0].value}
                case _:
                    self._queue.drop([job])
        return {}

    def pause_queue(self, queue: str, reason: str, for_s: float | None) -> None:
        """Start no further job of a queue."""
        with as_control_errors():
            self._queue.pause(queue, reason=reason, for_s=for_s)

    def resume_queue(self, queue: str) -> bool:
        """End the pause of a queue; False if there was none."""
        with as_control_errors():
            return self._queue.resume(queue)


def _builtins(document: object) -> Any:
    import msgspec

    # Through JSON: payloads and results are JSON text that is not decoded before.
    return msgspec.json.decode(msgspec.json.encode(document))


def _in_bodies(payloads: Sequence[Any]) -> Iterator[list[Any]]:
    """The payloads in batches that each fit into one request."""
    import json

    batch: list[Any] = []
    size = 0
    for payload in payloads:
        length = len(json.dumps(payload)) + 2
        if batch and (len(batch) == MOST_AT_ONCE or size + length > LARGEST_BODY):
            yield batch
            batch, size = [], 0
        batch.append(payload)
        size += length
    if batch:
        yield batch
