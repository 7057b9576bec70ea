"""Three workers in a group, in virtual time, and what a test wants to know of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.virtual.simulated_system import SimulatedSystem, worker

from rekindle.actors import Group, Status, WorkerSpec
from rekindle.actors.messages import WorkerStopped
from rekindle.actors.simulation import Script
from rekindle.actors.spec.group_order import arranged
from rekindle.actors.spec.start_order import check_order

GENEROUS = {"max_in_window": None, "max_lifetime": None}
"""Workers that are never given up themselves, so that the group decides."""


def member(id_: str, *, restart: Mapping[str, object] | None = None, **others: Any) -> WorkerSpec:
    """A member that is restarted after a second, as often as its group allows."""
    steps = {"initial_delay_s": 1.0, "multiplier": 1.0, **GENEROUS, **(restart or {})}
    return worker(id_, restart=steps, **others)


def group(name: str, members: tuple[str, ...], **settings: Any) -> Group:
    """A group, with its settings as words."""
    return Group(name, members, **settings)


def crew(
    *groups: Group,
    specs: tuple[WorkerSpec, ...] | None = None,
    scripts: Mapping[str, Script] | None = None,
    **settings: Any,
) -> SimulatedSystem:
    """A system with these groups, of `a`, `b` and `c` unless other workers are given; not started."""
    specs = specs or tuple(member(id_) for id_ in "abc")
    placed = arranged(specs, groups)
    check_order(placed)
    return SimulatedSystem(*placed, scripts=scripts or {}, **settings)


def starts(system: SimulatedSystem) -> list[tuple[float, str]]:
    """When which worker was started."""
    return [(at, id_) for at, id_, _ in system.processes.starts]


def stopped(system: SimulatedSystem) -> list[str]:
    """The workers that were stopped, in order."""
    return [event.component_id for _, event in system.events(WorkerStopped)]


def healthy(system: SimulatedSystem) -> set[str]:
    """The workers that are healthy."""
    return {each.component_id for each in system.report().workers if each.status is Status.HEALTHY}


def running(system: SimulatedSystem) -> set[str]:
    """The workers that have a process."""
    return {each.component_id for each in system.report().workers if each.pid is not None}
