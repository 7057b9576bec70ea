"""Which workers a command is for, and why it may be refused.

Belongs to the Supervisor and runs in it.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...messages import Refused
from ...spec.deployment.assigned import OF_THE_NODE
from ...spec.worker_spec import WorkerSpec
from ...supervision.worker import SupervisedWorker
from ..workers import Workers
from .standing_orders import StandingOrders

Ids = tuple[str, ...] | None
"""Some workers, or all of them."""


class ChosenWorkers:
    """Finds the workers that commands name."""

    def __init__(self, workers: Workers, orders: StandingOrders) -> None:
        self._workers = workers
        self._orders = orders

    def unknown(self, ids: Ids) -> Refused | None:
        """Refuse a command that names a worker which is not supervised."""
        unknown = next(
            (id_ for id_ in ids or () if id_ not in self._workers or self._workers.is_leaving(id_)), None
        )
        return None if unknown is None else Refused(f"no worker is called {unknown!r}", unknown)

    def refused_by_shutdown(self) -> Refused | None:
        """Refuse a command because the system is stopping."""
        return Refused("the system is stopping") if self._orders.stopping else None

    def refusal(self, ids: Ids) -> Refused | None:
        """Refuse a command that would start these workers, if they cannot be started now."""
        return self.unknown(ids) or self.refused_by_shutdown() or self.about_to_stop(ids)

    def chosen(self, ids: Ids) -> tuple[str, ...]:
        """These workers, or all."""
        return tuple(worker.id for worker in self._workers) if ids is None else ids

    def leased(self) -> tuple[str, ...]:
        """All that may not run when the lease of their node is over."""
        return tuple(id_ for id_ in self.chosen(None) if not id_.startswith(OF_THE_NODE))

    def known(self, ids: tuple[str, ...]) -> list[SupervisedWorker]:
        """The workers with these ids, without those that do not exist."""
        return [worker for id_ in ids if (worker := self._workers.get(id_)) is not None]

    def staying(self, ids: Ids) -> tuple[str, ...]:
        """The chosen workers without those that are being removed."""
        return tuple(id_ for id_ in self.chosen(ids) if not self._workers.is_leaving(id_))

    def about_to_stop(self, ids: Ids) -> Refused | None:
        """Refuse to start a worker whose stop is decided and waits for others."""
        stopping = next((id_ for id_ in self.chosen(ids) if self._workers.is_to_stop(id_)), None)
        return None if stopping is None else Refused(f"{stopping} is about to be stopped; try again")

    def being_removed(self, specs: Iterable[WorkerSpec]) -> Refused | None:
        """Refuse to declare a worker that is still being removed."""
        leaving = next((spec.id for spec in specs if self._workers.is_leaving(spec.id)), None)
        return None if leaving is None else Refused(f"{leaving} is still being removed; try again")
