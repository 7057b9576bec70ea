"""Pure: who of those that a breaker holds back may try for all of them."""

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
    Up,
    Worker,
)

Crew = Mapping[str, Worker]
"""Every worker, by its id."""

HOLDS = 3
"""So many times as long as it has to be healthy may a canary take, beside its time to start."""


def candidates(name: str, crew: Crew) -> tuple[str, ...]:
    """Those who may try; who waits for one that is held back itself would wait for ever."""
    free = _free(name, crew)
    return tuple(worker.id for worker in _ready(free, crew) or free)


def tries(canary: Worker | None, name: str, crew: Crew, waits_for: Collection[str]) -> bool:
    """Whether the canary still is on its way to be healthy for all; `waits_for`: whom its start waits for."""
    if canary is None or canary.spec.breaker is None or canary.spec.breaker.name != name:
        return False
    match canary.phase:
        case Up() if waits_for:
            # Whom it waits for may never come; others who could start at once need not wait, too.
            return not _needs(canary, crew) & _held(name, crew).keys() and not _ready(_free(name, crew), crew)
        case Up() | BackingOff() | Stopping(relaunch=True):
            return True
        case _:
            return False


def trial_s(ids: Collection[str], crew: Crew, hold_s: float) -> float:
    """How long one of these may try before it is another's turn: it may flap, or end again and again."""
    return max((crew[id_].spec.health.startup_timeout_s for id_ in ids), default=0.0) + HOLDS * hold_s


def are_yet_to_start(name: str, crew: Crew) -> bool:
    """Whether none of them was started yet, but for those who were given up in a former run."""
    at_hand = [worker.phase for worker in members(name, crew) if not isinstance(worker.phase, Failed)]
    return bool(at_hand) and all(isinstance(phase, Idle) and phase.rest is Rest.NEW for phase in at_hand)


def members(name: str, crew: Crew) -> list[Worker]:
    """Those who share a breaker."""
    return [w for w in crew.values() if w.spec.breaker is not None and w.spec.breaker.name == name]


def _ready(free: list[Worker], crew: Crew) -> list[Worker]:
    """Those of them who would wait for nobody, and for no end of a former process."""
    gone = [worker for worker in free if worker.lingering is None]
    return [worker for worker in gone if not any(_keeps_waiting(crew.get(id_)) for id_ in worker.spec.after)]


def _free(name: str, crew: Crew) -> list[Worker]:
    """Those who are held back, and wait for nobody who is."""
    held = _held(name, crew)
    return [crew[id_] for id_ in held if not _needs(crew[id_], crew) & held.keys()]


def _held(name: str, crew: Crew) -> dict[str, None]:
    """The ids of those who are held back, in their order."""
    return {worker.id: None for worker in members(name, crew) if is_held(worker)}


def _needs(worker: Worker, crew: Crew) -> set[str]:
    return all_before(worker.id, {each.id: each.spec.after for each in crew.values()})


def _keeps_waiting(worker: Worker | None) -> bool:
    """Whether those wait who are to start after it; for one that is not there nobody does."""
    return worker is not None and not worker.is_healthy
