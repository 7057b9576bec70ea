"""Everything that Rekindle raises at its callers.

    RekindleError
    ├── SpecError (ValueError)                 a worker's description makes no sense
    ├── UnknownWorkerError (LookupError)       no worker has that id
    ├── UnknownQueueError (LookupError)        no worker serves that queue
    ├── UnknownJobError (LookupError)          no job has that number
    ├── PayloadError (ValueError)              what is to be done is not JSON, or too long
    ├── RequestRefusedError (RuntimeError)     understood, but not now: the system is stopping, say
    ├── RequestTimeoutError (TimeoutError)     the actors did not answer in time
    └── StoreError (RuntimeError)
        ├── StoreUnavailableError              locked, full or gone: trying again may help
        ├── StoreOwnedError                    another supervisor works with this store
        ├── StoreDamagedError                  not a database, or a broken one
        └── StoreTooNewError                   written by a newer Rekindle

A worker that fails is an event (`WorkerDied`, `WorkerFailed`), never an exception.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


class RekindleError(Exception):
    """The root of everything that Rekindle raises."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a spec: where, and why."""

    field: str
    reason: str

    def __str__(self) -> str:
        return f"{self.field}: {self.reason}"


class SpecError(RekindleError, ValueError):
    """A worker's description makes no sense; every problem is named at once."""

    def __init__(self, worker: str, problems: Iterable[Problem]) -> None:
        self.worker = worker
        self.problems = tuple(problems)
        listed = "; ".join(str(problem) for problem in self.problems)
        super().__init__(f"worker {worker[:80]!r}: {listed}")


class UnknownWorkerError(RekindleError, LookupError):
    """No worker has that id."""

    def __init__(self, component_id: str) -> None:
        self.component_id = component_id
        super().__init__(f"no worker is called {component_id!r}")


class UnknownQueueError(RekindleError, LookupError):
    """No worker serves the queue: a job in it would wait for ever."""

    def __init__(self, queue: str, known: Iterable[str] = ()) -> None:
        self.queue = queue
        self.known = tuple(sorted(known))
        listed = ", ".join(self.known) or "none"
        super().__init__(f"no worker serves the queue {queue[:80]!r}; queues that are served: {listed}")


class UnknownJobError(RekindleError, LookupError):
    """No job has that number."""

    def __init__(self, job_id: int) -> None:
        self.job_id = job_id
        super().__init__(f"there is no job {job_id}")


class PayloadError(RekindleError, ValueError):
    """What is to be done cannot be kept: it is not JSON, or too long."""


class RequestRefusedError(RekindleError, RuntimeError):
    """The request was understood and declined; the text says why."""


class RequestTimeoutError(RekindleError, TimeoutError):
    """The actors did not answer in time."""


class StoreError(RekindleError, RuntimeError):
    """Something is wrong with the place where restart history is kept."""


class StoreUnavailableError(StoreError):
    """The store cannot be written now (locked, full, gone); trying again may help."""


class StoreOwnedError(StoreError):
    """Another supervisor works with this store."""


class StoreDamagedError(StoreError):
    """The store is not a database, or a broken one; nothing was overwritten."""


class StoreTooNewError(StoreError):
    """The store was written by a newer Rekindle than this one."""
