"""Pure: what an agent does about the workers that are assigned to it, and about those that it runs.

    assigned, placed     ─ not running, right held, epoch never ended here ─▶ start
    assigned, releasing  ─ running ─▶ stop (or kill: its time is over); not running ─▶ give back
    assigned, placed     ─ not running, epoch ended here ─▶ give back again: the database did not hear it
    not assigned, or under another epoch ─ running ─▶ stop
    no right ─ running ─▶ kill (fenced): the same epoch may start again when the right returns

A worker is stopped before its next epoch starts. An epoch that was given back never starts again, whatever
an old answer of the database says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import msgspec
from msgspec.structs import replace

from ..facts.tenures import Assignment, TenurePhase


class Holdings(msgspec.Struct, frozen=True):
    """By component: the epoch that runs here, and the last one that was given back."""

    running: Mapping[str, int] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    """Also while it is being stopped."""
    ended: Mapping[str, int] = msgspec.field(default_factory=lambda: MappingProxyType({}))


class Todo(msgspec.Struct, frozen=True, kw_only=True):
    """What follows from an answer of the database."""

    start: tuple[Assignment, ...] = ()
    stop: tuple[tuple[str, int], ...] = ()
    """Stopped by their own ladder, and not counted."""
    kill: tuple[tuple[str, int], ...] = ()
    """Those of them that have no time for that."""
    give_back: tuple[Assignment, ...] = ()


def todo(holdings: Holdings, assigned: Iterable[Assignment], may_run: bool, *, overdue: bool = False) -> Todo:
    """What to start, stop and give back; `assigned` are all assignments of this node.

    `overdue`: the node had until now to stop its workers.
    """
    by_id = {each.component_id: each for each in assigned}
    stop = [
        (component_id, epoch)
        for component_id, epoch in holdings.running.items()
        if not _stays(by_id.get(component_id), epoch)
    ]
    idle = [each for component_id, each in by_id.items() if component_id not in holdings.running]
    return Todo(
        start=tuple(each for each in idle if may_run and _may_start(holdings, each)),
        stop=tuple(stop),
        kill=tuple(stop) if overdue else (),
        give_back=tuple(each for each in idle if _must_give_back(holdings, each)),
    )


def _stays(assignment: Assignment | None, epoch: int) -> bool:
    return assignment is not None and assignment.epoch == epoch and assignment.phase is TenurePhase.PLACED


def _may_start(holdings: Holdings, assignment: Assignment) -> bool:
    return assignment.phase is TenurePhase.PLACED and not _has_ended(holdings, assignment)


def _must_give_back(holdings: Holdings, assignment: Assignment) -> bool:
    return assignment.phase is TenurePhase.RELEASING or _has_ended(holdings, assignment)


def _has_ended(holdings: Holdings, assignment: Assignment) -> bool:
    return assignment.epoch <= holdings.ended.get(assignment.component_id, 0)


def started(holdings: Holdings, component_id: str, epoch: int) -> Holdings:
    """A worker was started under an epoch."""
    return replace(holdings, running=MappingProxyType({**holdings.running, component_id: epoch}))


def stopped(holdings: Holdings, component_id: str, epoch: int) -> Holdings:
    """Its last process has ended, and none follows by itself."""
    if holdings.running.get(component_id) != epoch:
        return holdings
    left = {id_: each for id_, each in holdings.running.items() if id_ != component_id}
    return replace(holdings, running=MappingProxyType(left))


def given_back(holdings: Holdings, component_id: str, epoch: int) -> Holdings:
    """The agent has asked the database to free an assignment: it never starts this epoch again."""
    latest = max(epoch, holdings.ended.get(component_id, 0))
    return replace(holdings, ended=MappingProxyType({**holdings.ended, component_id: latest}))
