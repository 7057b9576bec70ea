"""The workers of a node: the cluster says which, not the file."""

from __future__ import annotations

from typing import Never

from rekindle.actors import RequestRefusedError
from rekindle.actors.facts.records import DeathRecord
from rekindle.actors.ports import Store
from rekindle.persistence.cluster.shared_jobs import SharedJobs

from ..fleet import Summary, SupervisedFleet

LATEST_DEATHS = 1000
"""Of one worker, among which the end of a job's process is found."""


class NodeFleet(SupervisedFleet):
    """A fleet whose workers are those that the cluster assigns to this node."""

    def share_jobs(self, shared: SharedJobs, journal: Store) -> None:
        """Use the queues of all nodes; the journal of this one says how its workers died."""
        self._controls.served = shared.queue.served

        def death_of(component_id: str, generation: int) -> DeathRecord | None:
            deaths = journal.deaths(component_id, limit=LATEST_DEATHS)
            return next((death for death in deaths if death.generation == generation), None)

        actors = self._requests.actors
        assert actors.periodic is not None
        shared.attend(death_of, actors.desk, actors.periodic)

    def reload(self) -> Summary:
        """Refuse: the database says what runs."""
        self._refuse()

    def scale(self, name: str, count: int, /) -> Summary:
        """Refuse: the database says what runs."""
        del name, count
        self._refuse()

    def obstacle(self) -> str | None:
        """Why this supervisor cannot be replaced in its process."""
        return (
            "it is a node of a cluster: restart it; its workers stay with it if it is back within its lease"
        )

    def _refuse(self) -> Never:
        raise RequestRefusedError(
            "nothing was changed: this supervisor is a node of a cluster; use: rekindle cluster apply FILE"
        )
