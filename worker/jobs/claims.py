"""The claims of a worker on jobs: the values that it exchanges with the queue, and the protocol."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any, Protocol

from . import sql

STARTS_BITS = 20
"""A token of a cluster is the epoch of the assignment, then this many bits for the start within it."""

MOST_ERRORS = 20
KEPT_OF_ERROR = 1000
"""How many characters of each are kept; `error` has more of the last one."""


class QueueUnavailableError(Exception):
    """The database is not available; whether the last exchange was committed is unknown."""


@dataclass(frozen=True, slots=True)
class Claimant:
    """The owner of a claim: a worker, its incarnation, and the run of its supervisor."""

    worker: str
    generation: int
    run: str
    supervised: bool = False
    """Whether the run is that of a supervisor; it must be the current one."""
    node: str | None = None
    """The node of a cluster on which it runs."""
    epoch: int | None = None
    """The epoch of its assignment to the node; None: it does not run in a cluster."""

    def values(self) -> dict[str, Any]:
        """The claimant as values of the statements."""
        return {
            "worker": self.worker, "generation": self.generation, "run": self.run,
            "node": self.node, "epoch": self.epoch,
        }  # fmt: skip

    @classmethod
    def supervisee(cls, worker: str, generation: int, run: str, node: str = "", token: int = 0) -> Claimant:
        """The worker of a supervisor; on the node of a cluster, its token has the epoch of its assignment."""
        if not node:
            return cls(worker, generation, run, supervised=True)
        return cls(worker, generation, run, supervised=True, node=node, epoch=token >> STARTS_BITS)


@dataclass(frozen=True, slots=True)
class Claim:
    """A job that this worker owns until the job ends, or the worker is considered dead."""

    id: int
    queue: str
    payload: str
    attempt: int
    crash_count: int
    error_count: int
    max_retries: int | None
    alone: bool
    checkpoint: str | None = None
    timeout_ms: int | None = None
    retry_delay_ms: int | None = None
    max_retry_delay_ms: int | None = None
    errors: str | None = None
    """Why earlier executions failed, as JSON text."""
    batch_counts: str | None = None
    """How the jobs of a batch ended, as JSON text, if this is the job at its end."""
    traceparent: str | None = None
    """The trace that the job belongs to, in the form of W3C Trace Context."""

    @property
    def execution(self) -> tuple[int, int]:
        """Which execution of which job: a job that was put back and claimed again has another one."""
        return self.id, self.attempt


@dataclass(frozen=True, slots=True)
class Ending:
    """How an execution ended: the statement that records it, and its values."""

    claim: Claim
    statement: str
    state: str
    """The job's state after it."""
    values: dict[str, Any]
    is_fault: bool = False
    """Whether the job raised: ten such endings in a row end the worker."""


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """What to claim next.

    `free`: the worker holds no other job. `isolate`: only a free worker may take a suspect.
    """

    queues: tuple[str, ...]
    free: bool = True
    isolate: bool = False


@dataclass(frozen=True, slots=True)
class Exchanged:
    """The outcome of an exchange."""

    accepted: bool | None = None
    """Whether the ending was recorded; False: the claim was no longer in force."""
    claim: Claim | None = None
    held_back: bool = False
    """Whether a job is due that this worker may only take when it holds no other."""


@dataclass(frozen=True, slots=True)
class Taken:
    """The job beside one that another queue delivered."""

    state: str
    """`running` if it was taken, or is executed elsewhere; `toxic` if it was set aside."""
    claim: Claim | None = None


class Claims(Protocol):
    """One connection to the queue, used by one thread. Any call may raise `QueueUnavailableError`."""

    def exchange(self, ending: Ending | None, request: ClaimRequest | None) -> Exchanged:
        """Record an ending and claim the next job, in one transaction."""
        ...

    def mine(self) -> tuple[Claim, ...]:
        """Every claim of this claimant that is in force."""
        ...

    def was_recorded(self, ending: Ending) -> bool:
        """Whether an ending whose outcome is unknown was recorded."""
        ...

    def save(self, claim: Claim, checkpoint: str) -> bool:
        """Store how far the execution came; False: the claim is no longer in force, or is cancelled."""
        ...

    def show(self, claim: Claim, progress: str) -> bool:
        """Store what the execution shows of its progress; False: as above."""
        ...

    def take(self, queue: str, key: str, payload: str) -> Taken:
        """Claim the job beside one that another queue delivered with this id; the first time it is added."""
        ...

    def idle(self, queues: tuple[str, ...], longest_s: float, interruption: int) -> None:
        """Return when there may be a job to claim, or the descriptor `interruption` is readable."""
        ...

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        ...


def finished(claim: Claim, result: str | None) -> Ending:
    """The job is done."""
    return Ending(claim, sql.FINISH, "done", {"result": result})


def failed(
    claim: Claim,
    error: str,
    retry_in_s: float | None,
    at_wall_ms: int | None = None,
    worker: str = "",
    began_at_wall_ms: int | None = None,
) -> Ending:
    """The job raised, now or at that time; without a delay it is not retried."""
    at_wall_ms = now_wall_ms() if at_wall_ms is None else at_wall_ms
    errors = with_error(claim.errors, claim.attempt, at_wall_ms, worker, error, began_at_wall_ms)
    values = {"error": error, "errors": errors}
    if retry_in_s is None:
        return Ending(claim, sql.FAIL, "error", values, is_fault=True)
    not_before = at_wall_ms + round(retry_in_s * 1000)
    return Ending(claim, sql.RETRY, "pending", {**values, "not_before": not_before}, is_fault=True)


def cancelled(claim: Claim) -> Ending:
    """The job ended because it was cancelled."""
    return Ending(claim, sql.GIVE_BACK, "cancelled", {})


def given_back(claim: Claim) -> Ending:
    """The job was not begun."""
    return Ending(claim, sql.GIVE_BACK, "pending", {})


def fence_values(claim: Claim, claimant: Claimant) -> dict[str, Any]:
    """The values by which a claim that is in force is known."""
    return {"id": claim.id, "attempt": claim.attempt, **claimant.values()}


def ending_values(ending: Ending, claimant: Claimant) -> dict[str, Any]:
    """All values of an ending's statement."""
    fence = fence_values(ending.claim, claimant)
    return {**ending.values, **fence, "now": now_wall_ms(), "state": ending.state}


def request_values(request: ClaimRequest, queue: str, claimant: Claimant) -> dict[str, Any]:
    """All values of a claim on one queue."""
    wanted = {"free": request.free, "isolate": request.isolate}
    return {**claimant.values(), **due_values(queue, claimant), **wanted}


def delivered_values(queue: str, key: str, payload: str, claimant: Claimant) -> dict[str, Any]:
    """All values of a job that another queue delivered, but its number."""
    return {**claimant.values(), **due_values(queue, claimant), "key": key, "payload": payload}


def due_values(queue: str, claimant: Claimant) -> dict[str, Any]:
    """All values of a look for due jobs in one queue."""
    return {
        "queue": queue, "now": now_wall_ms(), "run": claimant.run, "supervised": claimant.supervised,
        "worker": claimant.worker, "epoch": claimant.epoch,
    }  # fmt: skip


def next_due(row: Any) -> float:
    """When a job of a queue may be claimed, by a row of `sql.NEXT_DUE`; infinity if there is none."""
    if row is None or row[0] is None:
        return float("inf")
    return float(max(row[0], row[1] or 0))


def claim_of(row: Any) -> Claim:
    """The claim in a row of `sql.COLUMNS`; an invalid count is 0, as in the supervisor."""
    id_, queue, payload, attempts, crashes, errors, max_retries, alone, checkpoint, _, *settings = row
    counts = (_count(attempts), _count(crashes), _count(errors))
    return Claim(id_, queue, payload, *counts, max_retries, bool(alone), checkpoint, *settings)


def is_expired(row: Any) -> bool:
    """Whether the job in a row of `sql.COLUMNS` expired instead of being claimed."""
    return bool(row[_STATE] == "expired")


_STATE = sql.COLUMNS.index("state")


def with_error(
    errors: str | None,
    attempt: int,
    at_wall_ms: int,
    worker: str,
    error: str,
    began_at_wall_ms: int | None = None,
) -> str:
    """The stored errors of a job with one more; the latest are kept, and of each its beginning."""
    try:
        before = json.loads(errors or "[]")
    except ValueError:
        before = []
    new = {
        "attempt": attempt,
        "at_wall_ms": at_wall_ms,
        "component_id": worker,
        "error": error[:KEPT_OF_ERROR],
        "began_at_wall_ms": began_at_wall_ms,
    }
    return json.dumps([*before, new][-MOST_ERRORS:] if isinstance(before, list) else [new])


def now_wall_ms() -> int:
    """The time as the queue stores it."""
    return time.time_ns() // 1_000_000


def _count(stored: object) -> int:
    return stored if isinstance(stored, int) else 0
