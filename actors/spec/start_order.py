"""Pure: which worker waits for which.

A worker's `after` names others that must be healthy before it starts; they are stopped after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..errors import Problem, SpecError
from .worker_spec import WorkerSpec


def check_order(specs: Iterable[WorkerSpec], newcomer: str | None = None) -> None:
    """Refuse workers that wait for an unknown worker, or for each other.

    Args:
        specs: the specs of all workers.
        newcomer: the only worker whose `after` must name known workers; None: every worker's must.

    Raises:
        SpecError: with the worker and the workers that it waits for.
    """
    known = {spec.id: spec for spec in specs}
    after = {id_: spec.after for id_, spec in known.items()}
    for id_, others in after.items():
        unknown = [other for other in others if other not in after]
        if unknown and newcomer in (None, id_):
            raise SpecError(id_, [Problem("after", f"unknown worker: {other!r}") for other in unknown])
        by_clock = [other for other in others if other in known and known[other].schedule is not None]
        if by_clock and newcomer in (None, id_):
            reason = "has a schedule: only workers that run on, or once, can be waited for"
            raise SpecError(id_, [Problem("after", f"{other!r} {reason}") for other in by_clock])
    cycle = find_cycle(after)
    if cycle:
        raise SpecError(cycle[0], [Problem("after", f"forms a cycle: {' → '.join(cycle)}")])


def order_problem(specs: Iterable[WorkerSpec], newcomer: str | None = None) -> str | None:
    """Why these cannot be supervised together; workers other than the new one may name removed workers."""
    try:
        check_order(specs, newcomer)
    except SpecError as error:
        return str(error)
    return None


def all_before(component_id: str, after: Mapping[str, Iterable[str]]) -> set[str]:
    """The workers that a worker waits for, directly or indirectly."""
    found: set[str] = set()
    todo = list(after.get(component_id, ()))
    while todo:
        id_ = todo.pop()
        if id_ not in found:
            found.add(id_)
            todo += after.get(id_, ())
    return found


def find_cycle(after: Mapping[str, Iterable[str]]) -> list[str]:
    """A cycle of workers that wait for each other; empty if there is none."""
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
    """How long stopping all workers may take: workers that wait for each other stop one by one."""
    known = {spec.id: spec for spec in specs}
    times: dict[str, float] = {}

    def chain(id_: str) -> float:
        if id_ not in times:
            waits = (chain(other) for other in known[id_].after if other in known)
            times[id_] = known[id_].stop.total_s + max(waits, default=0.0)
        return times[id_]

    return max((chain(id_) for id_ in known), default=0.0)
