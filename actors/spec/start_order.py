"""Pure: which worker waits for which.

A worker's `after` names others that must be healthy before it starts; they are stopped after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..errors import Problem, SpecError
from .worker_spec import WorkerSpec


def check_order(specs: Iterable[WorkerSpec], newcomer: str | None = None) -> None:
    """Refuse workers that wait for nobody we know, or for each other.

    Args:
        specs: all of them.
        newcomer: the only one that must name those who are there; None: all must.

    Raises:
        SpecError: naming the worker and whom it waits for.
    """
    after = {spec.id: spec.after for spec in specs}
    for id_, others in after.items():
        unknown = [other for other in others if other not in after]
        if unknown and newcomer in (None, id_):
            raise SpecError(id_, [Problem("after", f"names no worker: {other!r}") for other in unknown])
    cycle = find_cycle(after)
    if cycle:
        raise SpecError(cycle[0], [Problem("after", f"goes round in a circle: {' → '.join(cycle)}")])


def all_before(component_id: str, after: Mapping[str, Iterable[str]]) -> set[str]:
    """All that a worker waits for, and that these wait for, and so on."""
    found: set[str] = set()
    todo = list(after.get(component_id, ()))
    while todo:
        id_ = todo.pop()
        if id_ not in found:
            found.add(id_)
            todo += after.get(id_, ())
    return found


def find_cycle(after: Mapping[str, Iterable[str]]) -> list[str]:
    """A chain of workers that ends where it began; empty if there is none."""
    done: set[str] = set()

    def walk(id_: str, chain: list[str]) -> list[str]:
        if id_ in chain:
            return [*chain[chain.index(id_) :], id_]
        if id_ in done:
            return []
        for other in after.get(id_, ()):
            found = walk(other, [*chain, id_])
            if found:
                return found
        done.add(id_)
        return []

    return next((found for id_ in after if (found := walk(id_, []))), [])


def longest_stop_s(specs: Iterable[WorkerSpec]) -> float:
    """How long stopping all of them may take: those that wait for each other stop one by one."""
    known = {spec.id: spec for spec in specs}
    times: dict[str, float] = {}

    def chain(id_: str) -> float:
        if id_ not in times:
            waits = (chain(other) for other in known[id_].after if other in known)
            times[id_] = known[id_].stop.total_s + max(waits, default=0.0)
        return times[id_]

    return max((chain(id_) for id_ in known), default=0.0)
