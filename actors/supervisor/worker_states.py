"""The workers under supervision, by id, and those that were removed.

Belongs to the Supervisor's `Workers`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, ValuesView

from ..supervision import group_rules as groups
from ..supervision.worker import SupervisedWorker


class WorkerStates(Mapping[str, SupervisedWorker]):
    """The state of every worker, in the order in which they were declared."""

    def __init__(self) -> None:
        self._workers: dict[str, SupervisedWorker] = {}
        self._by_group: Mapping[str, tuple[str, ...]] | None = None
        """The ids of the members of each group; None: to be collected again."""
        self._removing: set[str] = set()
        self._removed: dict[str, SupervisedWorker] = {}
        """Removed workers: counters, failure and generations belong to the id, as their history does."""

    def __getitem__(self, component_id: str) -> SupervisedWorker:
        return self._workers[component_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._workers)

    def __len__(self) -> int:
        return len(self._workers)

    def values(self) -> ValuesView[SupervisedWorker]:
        """The workers themselves, without the detour over their ids."""
        return self._workers.values()

    def put(self, worker: SupervisedWorker) -> None:
        """Replace the state of a worker, or add it."""
        known = self._workers.get(worker.id)
        if known is None or known.spec is not worker.spec:
            self._by_group = None
        self._workers[worker.id] = worker

    def arrange(self, order: Iterable[str]) -> None:
        """Keep the workers in this order; those that are being removed come last."""
        self._workers = {id_: self._workers[id_] for id_ in dict.fromkeys((*order, *self._workers))}

    def members_of(self, *names: str) -> tuple[SupervisedWorker, ...]:
        """The workers of these groups."""
        if self._by_group is None:
            self._by_group = groups.ids_by_group(self._workers.values())
        ids = dict.fromkeys(id_ for name in names for id_ in self._by_group.get(name, ()))
        return tuple(self._workers[id_] for id_ in ids)

    # ── removal ──────────────────────────────────────────────────────────────────────────

    def dismiss(self, component_id: str) -> None:
        """Forget this worker once it has come to rest."""
        self._removing.add(component_id)

    def is_leaving(self, component_id: str) -> bool:
        """Whether this worker is being removed."""
        return component_id in self._removing

    def remove(self, worker: SupervisedWorker) -> None:
        """The worker has come to rest: keep only what belongs to its id."""
        self._removing.discard(worker.id)
        self._removed[worker.id] = worker
        del self._workers[worker.id]
        self._by_group = None

    def take_removed(self, component_id: str) -> SupervisedWorker | None:
        """The worker as it was when it was removed, if it is to be supervised again."""
        return self._removed.pop(component_id, None)

    def latest_generations(self) -> dict[str, int]:
        """The latest number of every worker, also of those that were removed."""
        return {id_: worker.generation for id_, worker in {**self._removed, **self._workers}.items()}
