"""Everything that Rekindle raises at its callers.

    RekindleError
    ├── SpecError (ValueError)                 a worker's spec is invalid
    ├── UnknownWorkerError (LookupError)       no worker has that id
    ├── UnknownQueueError (LookupError)        no worker serves that queue
    ├── UnknownJobError (LookupError)          no job has that number
    ├── UnknownBatchError (LookupError)        no batch has that number
    ├── PayloadError (ValueError)              a job's payload is not JSON, or too long
    ├── JobFailedError (RuntimeError)          a job ended without a result
    ├── UnknownDeathError (LookupError)        no such death is persisted
    ├── RequestRefusedError (RuntimeError)     not possible now, such as while the system is stopping
    │   ├── PausedError                        the worker, or everything, is paused
    │   ├── SocketError                        a listening socket cannot be opened
    │   └── ConfigurationError                 the settings are invalid; nothing was changed
    ├── RequestTimeoutError (TimeoutError)     the actors did not answer in time
    ├── TaskError (RuntimeError)               a task raised an exception that cannot be rebuilt here
    ├── WorkerCrashedError (RuntimeError)      a task crashed its worker; only its own future fails
    ├── TaskTimeoutError (TimeoutError)        a task ran for too long; its worker was killed
    ├── ExecutorBrokenError (BrokenExecutor)   no worker of an executor can be started
    └── StoreError (RuntimeError)
        ├── StoreUnavailableError              locked, full or gone: a retry may help
        ├── StoreOwnedError                    another supervisor uses this store
        ├── StoreDamagedError                  not a database, or a broken one
        ├── RecordRefusedError                 a record cannot be written: a retry does not help
        └── StoreTooNewError                   written by a newer Rekindle

A worker that fails is an event (`WorkerDied`, `WorkerFailed`), never an exception, except for the task
that crashed an executor's worker, since its caller waits for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .deaths.death import Death


class RekindleError(Exception):
    """The base class of all exceptions of Rekindle."""


NO_VALUE: Final = object()
"""Marks a problem without a value to show."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One error in a spec: the field, the reason, and the invalid value."""

    field: str
    reason: str
    value: object = dataclass_field(default=NO_VALUE, compare=False)

    def __str__(self) -> str:
        shown = "" if self.value is NO_VALUE else f" = {_shortened(repr(self.value))}"
        return f"{self.field}{shown}: {self.reason}"


def _shortened(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."


class SpecError(RekindleError, ValueError):
    """A worker's spec is invalid; the message lists every problem."""

    def __init__(self, worker: str, problems: Iterable[Problem], kind: str = "worker") -> None:
        self.worker = worker
        """The worker's id, or the name of the policy."""
        self.problems = tuple(problems)
        listed = "; ".join(str(problem) for problem in self.problems)
        super().__init__(f"{kind} {worker[:80]!r}: {listed}")


class UnknownWorkerError(RekindleError, LookupError):
    """No worker has that id."""

    def __init__(self, component_id: str, known: Iterable[str] = ()) -> None:
        self.component_id = component_id
        self.near = near(str(component_id), known)
        """Ids that may have been meant."""
        meant = f"; did you mean {' or '.join(self.near)}?" if self.near else ""
        super().__init__(f"no worker is called {component_id!r}{meant}")


def near(name: str, known: Iterable[str], most: int = 3) -> tuple[str, ...]:
    """The known names that contain this one, or else are similar to it."""
    from difflib import get_close_matches  # rarely needed

    names = sorted(known)
    having_it = [each for each in names if name and name.casefold() in each.casefold()]
    # The comparison takes time that grows with the square of the length.
    return tuple(having_it[:most] or get_close_matches(name[:64], names, most))


class UnknownQueueError(RekindleError, LookupError):
    """No worker serves the queue: a job in it would never run."""

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


class UnknownBatchError(RekindleError, LookupError):
    """No batch has that number."""

    def __init__(self, batch: int) -> None:
        self.batch = batch
        super().__init__(f"there is no batch {batch}")


class PayloadError(RekindleError, ValueError):
    """A job's payload cannot be stored: it is not JSON, or too long."""


class UnknownDeathError(RekindleError, LookupError):
    """No such death is persisted."""

    def __init__(self, component_id: str, generation: int) -> None:
        self.component_id = component_id
        self.generation = generation
        super().__init__(f"nothing is kept of the end of {component_id} in generation {generation}")


class RequestRefusedError(RekindleError, RuntimeError):
    """The request was refused; the message says why."""


class PausedError(RequestRefusedError):
    """A pause prevents a start: the worker's own, or that of everything."""

    def __init__(self, reason: str, paused: str) -> None:
        super().__init__(reason)
        self.everything = not paused
        """Whether everything is paused, and not only the worker."""


class SocketError(RequestRefusedError):
    """A listening socket cannot be opened; the message says why."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        """The name of the socket."""
        self.reason = reason
        super().__init__(f"socket {name!r} {reason}")


class ConfigurationError(RequestRefusedError):
    """The new settings are invalid; nothing was changed."""


class RequestTimeoutError(RekindleError, TimeoutError):
    """The actors did not answer in time."""


class JobFailedError(RekindleError, RuntimeError):
    """A job ended without a result."""

    def __init__(self, job_id: int, state: str, error: str | None) -> None:
        super().__init__(job_id, state, error)
        self.job_id = job_id
        self.state = state
        """error, toxic, cancelled or expired."""
        self.error = error
        """What the job raised, or why it is toxic."""

    def __str__(self) -> str:
        how = {"error": "failed", "toxic": "is toxic", "cancelled": "was cancelled"}.get(
            self.state, self.state
        )
        why = f": {self.error.partition(chr(10))[0]}" if self.error else ""
        return f"job {self.job_id} {how}{why}"


class TaskError(RekindleError, RuntimeError):
    """A task raised an exception that cannot be rebuilt here; its cause has the traceback."""

    def __init__(self, type_name: str, text: str) -> None:
        super().__init__(type_name, text)
        self.type_name = type_name
        self.text = text

    def __str__(self) -> str:
        return f"{self.type_name}: {self.text}"


class WorkerCrashedError(RekindleError, RuntimeError):
    """The worker died while it ran this task: the deaths, with the worker's last output."""

    def __init__(self, task: str, deaths: tuple[Death, ...]) -> None:
        super().__init__(task, deaths)
        self.task = task
        self.deaths = deaths
        """Every death that this task caused, oldest first."""

    @property
    def death(self) -> Death:
        """The last one: worker, generation, exit code or signal, uptime, last lines."""
        return self.deaths[-1]

    @property
    def exit_code(self) -> int | None:
        """The code that the worker exited with; None if a signal ended it."""
        return self.death.exit.code

    @property
    def signal(self) -> int | None:
        """The signal that ended the worker."""
        return self.death.exit.signal

    @property
    def output(self) -> tuple[str, ...]:
        """The last lines that the worker wrote."""
        return self.death.output

    def __str__(self) -> str:
        death, often = self.death, len(self.deaths)
        times = "" if often == 1 else f" (crash {often} of this task)"
        text = f"{self.task}: its worker {death.component_id}, generation {death.generation}, {death}{times}"
        lines = "".join(f"\n  {line}" for line in death.output)
        return f"{text}; its last lines:{lines}" if lines else text


class TaskTimeoutError(RekindleError, TimeoutError):
    """A task ran for longer than its time limit; its worker was killed."""

    def __init__(self, task: str, timeout_s: float, worker: str) -> None:
        super().__init__(task, timeout_s, worker)
        self.task = task
        self.timeout_s = timeout_s
        self.worker = worker

    def __str__(self) -> str:
        return (
            f"{self.task}: it ran for longer than {self.timeout_s:g} s; its worker {self.worker} was killed"
        )


class ExecutorBrokenError(RekindleError, BrokenExecutor):
    """No worker of the executor can be started; the message says why."""


class StoreError(RekindleError, RuntimeError):
    """The store of the restart history failed."""


class StoreUnavailableError(StoreError):
    """The store cannot be written now (locked, full, gone); a retry may help."""


class StoreOwnedError(StoreError):
    """Another supervisor uses this store."""


class StoreDamagedError(StoreError):
    """The store is not a database, or is damaged; nothing was overwritten."""


class RecordRefusedError(StoreError):
    """One of the records cannot be written as it is; nothing was written, and a retry does not help."""


class StoreTooNewError(StoreError):
    """The store was written by a newer Rekindle than this one."""
