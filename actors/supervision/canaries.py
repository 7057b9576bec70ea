"""Pure: which of the workers that a breaker holds back can be its canary."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ..spec.start_order import all_before
from . import is_held
from .worker import (
    BackingOff,
    Failed,
    Idle,
    Rest,
    Stopping,
    SupervisedWorker,
    Up,
)

WorkerMap = Mapping[str, SupervisedWorker]
"""Every worker, by its id."""

HOLDS = 3
"""A canary may take this many times the required healthy time, plus its time to start."""


def candidates(name: str, workers: WorkerMap) -> tuple[str, ...]:
    """The possible canaries; a worker that waits for a held worker would never start."""
    free = _free(name, workers)
    return tuple(worker.id for worker in _ready(free, workers) or free)


def tries(canary: SupervisedWorker | None, name: str, workers: WorkerMap, waits_for: Collection[str]) -> bool:
    """Whether the canary can still become healthy; `waits_for`: the workers that its start waits for."""
    if canary is None or canary.spec.breaker is None or canary.spec.breaker.name != name:
        return False
    match canary.phase:
        case Up() if waits_for:
            # What it waits for may never start; a worker that can start at once is the better canary.
            return not _needs(canary, workers) & _held(name, workers).keys() and not _ready(
                _free(name, workers), workers
            )
        case Up() | BackingOff() | Stopping(relaunch=True):
            return True
        case _:
            return False


def trial_s(ids: Collection[str], workers: WorkerMap, hold_s: float) -> float:
    """How long one of these may try before it is another's turn: it may flap, or end again and again."""
    return max((workers[id_].spec.health.startup_timeout_s for id_ in ids), default=0.0) + HOLDS * hold_s


def are_yet_to_start(name: str, workers: WorkerMap) -> bool:
    """Whether none of them was started yet, except workers that failed in a former run."""
    at_hand = [worker.phase for worker in members(name, workers) if not isinstance(worker.phase, Failed)]
    return bool(at_hand) and all(isinstance(phase, Idle) and phase.rest is Rest.NEW for phase in at_hand)


def members(name: str, workers: WorkerMap) -> list[SupervisedWorker]:
    """The workers that share a breaker."""
    return [w for w in workers.values() if w.spec.breaker is not None and w.spec.breaker.name == name]


def _ready(free: list[SupervisedWorker], workers: WorkerMap) -> list[SupervisedWorker]:
    """The workers of these that can start at once: no worker and no former process is in the way."""
    gone = [worker for worker in free if worker.lingering is None]
    return [
        worker
        for worker in gone
        if not any(_keeps_waiting(workers.get(id_), worker) for id_ in worker.spec.after)
    ]


def _free(name: str, workers: WorkerMap) -> list[SupervisedWorker]:
    """The held workers that do not wait for another held worker."""
    held = _held(name, workers)
    return [workers[id_] for id_ in held if not _needs(workers[id_], workers) & held.keys()]


def _held(name: str, workers: WorkerMap) -> dict[str, None]:
    """The ids of the held workers, in their order."""
    return {worker.id: None for worker in members(name, workers) if is_held(worker)}


def _needs(worker: SupervisedWorker, workers: WorkerMap) -> set[str]:
    return all_before(worker.id, {each.id: each.spec.after for each in workers.values()})


def _keeps_waiting(before: SupervisedWorker | None, worker: SupervisedWorker) -> bool:
    """Whether a worker has to wait for one before it; a missing worker holds up no start."""
    return before is not None and not before.lets_start(worker.spec)
