"""Pure: which work items are held, written down so that a next run can release them.

A supervisor that is killed together with its workers releases nothing. So what a worker with a release
policy holds is in the store from the moment it is reported until it is let go or released; what is
still there at a start belonged to a worker that is gone. An interrupted release is repeated.

    taken ─▶ written down ─let go of, or stopped well─▶ struck out
                   ├─ its worker died ─▶ released ─▶ struck out
                   ├─ all were killed ─▶ the next start ─▶ released ─▶ struck out
                   └─ an upgrade of the supervisor cut its release off ─▶ released ─▶ struck out
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from ...deaths.death import Exit, Job
from ...facts.records import MetaSet
from ...spec.policies.work_item_policy import Release, ReleaseOrder, is_wanted, item_of
from ...spec.worker_spec import WorkerSpec

HELD = "held_work:"
"""The prefix; the worker and its generation follow."""

LEFT = "left_work:"
"""Then the run that found it, and whose it was: a run that is cut off as well adds another one."""


def order(spec: WorkerSpec, generation: int, job: Job | None, exit_: Exit) -> ReleaseOrder | None:
    """How what a worker is at is released, if its spec says so, and there is something."""
    policy = spec.release
    cwd = spec.cwd if policy is None else policy.cwd or spec.cwd
    if policy is None or not is_wanted(policy, cwd) or (item := item_of(job, policy)) is None:
        return None
    return ReleaseOrder(Release(spec.id, generation, item, exit_.code, exit_.signal), policy, cwd, spec)


def hold_records(spec: WorkerSpec, generation: int, job: Job | None) -> tuple[MetaSet, ...]:
    """The records to persist when the worker holds this job; none if nothing would be released."""
    policy = spec.release
    if policy is None or not is_wanted(policy, policy.cwd or spec.cwd):
        return ()
    return (MetaSet(_key(spec.id, generation), item_of(job, policy)),)


def release_record(order: ReleaseOrder) -> MetaSet:
    """The record for a work item that is not held now."""
    return MetaSet(order.note or _key(order.release.component_id, order.release.generation), None)


def left_behind(
    specs: Iterable[WorkerSpec], meta: Mapping[str, str], run: str
) -> tuple[tuple[ReleaseOrder, ...], tuple[MetaSet, ...]]:
    """What former runs left behind: what to release, and what to persist before any worker starts.

    An item that no current spec can release is removed from the store.
    """
    known = {spec.id: spec for spec in specs}
    orders: list[ReleaseOrder] = []
    notes: list[MetaSet] = []
    for key, item in meta.items():
        if not key.startswith((HELD, LEFT)):
            continue
        whose = key.removeprefix(HELD) if key.startswith(HELD) else key.removeprefix(LEFT).partition(":")[2]
        component_id, _, number = whose.rpartition(":")
        note = f"{LEFT}{run}:{whose}" if key.startswith(HELD) else key
        spec, generation = known.get(component_id), int(number) if number.isdecimal() else 0
        found = None if spec is None else order(spec, generation, item, Exit())
        if found is not None:
            orders.append(replace(found, note=note))
        notes += [MetaSet(key, None)] if note != key or found is None else []
        notes += [MetaSet(note, item)] if note != key and found is not None else []
    return tuple(orders), tuple(notes)


def interrupted(
    specs: Iterable[WorkerSpec], meta: Mapping[str, str], held: Mapping[str, int]
) -> tuple[ReleaseOrder, ...]:
    """What the former program of this process had begun to release; its tools may have ended since.

    Args:
        specs: the workers.
        meta: what the store remembers.
        held: the generation of each worker that holds its item, or will be ordered to release it.
    """
    known = {spec.id: spec for spec in specs}
    orders: list[ReleaseOrder] = []
    for key, item in meta.items():
        is_left = key.startswith(LEFT)
        if not is_left and not key.startswith(HELD):
            continue
        whose = key.removeprefix(LEFT).partition(":")[2] if is_left else key.removeprefix(HELD)
        component_id, _, number = whose.rpartition(":")
        spec, generation = known.get(component_id), int(number) if number.isdecimal() else 0
        if spec is None or (not is_left and held.get(component_id) == generation):
            continue
        found = order(spec, generation, item, Exit())
        if found is not None:
            orders.append(replace(found, note=key) if is_left else found)
    return tuple(orders)


def _key(component_id: str, generation: int) -> str:
    return f"{HELD}{component_id}:{generation}"
