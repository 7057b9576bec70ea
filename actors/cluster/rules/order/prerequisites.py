"""Pure: what a worker waits for before it is placed: others that are ready or done, on whichever nodes.

    after a task      ─ done for the cluster ─▶ met
    after a service   ─ placed, and healthy once under its epoch ─▶ met
    after one of its group ─ placed, or to be placed with it ─▶ met: its node keeps the order

It is asked when a worker is placed, also after its node was lost; a worker that runs is not stopped because
another one is no longer ready.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....spec.worker_spec import Until
from ...facts.tenures import TenurePhase
from ...facts.wishes import Wanted, Wish
from ..fleet import Fleet, Occupancy


def unmet(fleet: Fleet, occupancy: Occupancy, wish: Wish) -> str | None:
    """What a worker still waits for, in words; None: nothing."""
    waits = ", ".join(_unmet(fleet, occupancy, wish))
    return f"waits for {waits}" if waits else None


def _unmet(fleet: Fleet, occupancy: Occupancy, wish: Wish) -> Iterator[str]:
    for component_id, until in wish.after.items():
        if _counts(fleet, component_id) and (until is Until.DONE or not _is_ready(fleet, component_id)):
            yield f"{component_id} to be {until}"
    for component_id in wish.beside:
        if _counts(fleet, component_id) and not occupancy.is_settled(component_id):
            yield f"{component_id}, which is before it in its group"


def _counts(fleet: Fleet, component_id: str) -> bool:
    """Whether a worker can be waited for: it exists, and is not done already."""
    other = fleet.wishes.get(component_id)
    return other is not None and other.wanted is not Wanted.DONE


def _is_ready(fleet: Fleet, component_id: str) -> bool:
    assignment, tenure = fleet.assignments.get(component_id), fleet.tenures.get(component_id)
    if assignment is None or tenure is None or assignment.phase is not TenurePhase.PLACED:
        return False
    return tenure.epoch == assignment.epoch and tenure.ready_ms is not None
