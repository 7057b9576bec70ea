"""The specs of the workers that a system supervises now."""

from __future__ import annotations

import json
from collections.abc import Iterable

from ..errors import Problem, SpecError, UnknownWorkerError
from ..facts.jobs import SERVED_QUEUES
from ..facts.records import MetaSet
from ..spec.group_order import arranged
from ..spec.policies.group import Group
from ..spec.start_order import check_order, longest_stop_s
from ..spec.worker_spec import WorkerSpec, served_by


class DeclaredWorkers:
    """The current specs, as the Supervisor reports them. Every reader sees one consistent tuple."""

    def __init__(self, specs: Iterable[WorkerSpec], groups: Iterable[Group] = ()) -> None:
        """Take the first specs.

        Raises:
            SpecError: two workers share an id, or wait for each other; or a group is invalid.
        """
        self.specs = distinct(specs, groups)

    def get(self, component_id: str) -> WorkerSpec:
        """The spec of one worker.

        Raises:
            UnknownWorkerError: no worker has this id.
        """
        for spec in self.specs:
            if spec.id == component_id:
                return spec
        raise self.unknown(component_id)

    def unknown(self, component_id: str) -> UnknownWorkerError:
        """The error for an id that no worker has."""
        return UnknownWorkerError(component_id, (spec.id for spec in self.specs))

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues that the workers serve."""
        return served_by(self.specs)

    @property
    def queues_record(self) -> MetaSet:
        """The served queues, as the store keeps them for programs that enqueue jobs."""
        return MetaSet(SERVED_QUEUES, json.dumps(self.queues))

    @property
    def longest_stop_s(self) -> float:
        """How long stopping all workers can take, by their own stop policies."""
        return longest_stop_s(self.specs)


def checked(spec: WorkerSpec) -> WorkerSpec:
    """The spec, if it is one.

    Raises:
        TypeError: it is something else.
    """
    if not isinstance(spec, WorkerSpec):
        raise TypeError(f"a worker must be a WorkerSpec, not {spec!r}")
    return spec


def distinct(specs: Iterable[WorkerSpec], groups: Iterable[Group] = ()) -> tuple[WorkerSpec, ...]:
    """The specs as a tuple, with their places in the groups, if they can be supervised together.

    Raises:
        SpecError: two workers share an id, or wait for each other; or a group is invalid.
    """
    chosen: dict[str, WorkerSpec] = {}
    for spec in specs:
        if checked(spec).id in chosen:
            raise SpecError(spec.id, [Problem("id", "is used by two workers")])
        chosen[spec.id] = spec
    groups = tuple(groups)
    placed = arranged(chosen.values(), groups) if groups else tuple(chosen.values())
    check_order(placed)
    return placed
