"""What an operator reads and orders directly in the database of a cluster: `rekindle cluster …`."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec
from sqlalchemy import Connection

from rekindle.actors.cluster.cluster_messages import Change, Changed, ClusterRead
from rekindle.actors.cluster.facts.node_lives import NodeLife
from rekindle.actors.cluster.facts.tenures import Tenure
from rekindle.actors.cluster.rules.tenure_counters import carried
from rekindle.actors.errors import StoreError
from rekindle.actors.facts.jobs import SERVED_QUEUES

from ..database.driver_errors import translated
from ..database.engines import postgresql_engine, shown_url
from . import cluster_sql as sql
from . import rulings
from .changes import apply
from .cluster_rows import tenure
from .orphaned_claims import release_orphaned
from .postgres_cluster import LOCK_TIMEOUT_MS, read_cluster, server_url
from .shared_jobs import DECLARED, DeclaredQueues
from .shared_tables import prepare


class ClusterDesk:
    """The database of a cluster, without an agent. Each method is one transaction."""

    def __init__(self, where: str) -> None:
        """Open the database and bring its tables up to date.

        Raises:
            StoreError: it cannot be reached or used.
        """
        url = server_url(where)
        self.name = shown_url(url)
        self._engine = postgresql_engine(url, lock_timeout_ms=LOCK_TIMEOUT_MS)
        with translated(self.name):
            prepare(self._engine, self.name)

    def claim_name(self, name: str) -> None:
        """Let the database belong to the cluster of this name.

        Raises:
            StoreError: it belongs to another one.
        """
        with self._begun() as connection:
            connection.execute(sql.NAME_CLUSTER, {"name": name})
            found = connection.execute(sql.CLUSTER_NAME).scalar_one()
        if found != name:
            raise StoreError(f"{self.name} belongs to the cluster {found}, not to {name}: see [cluster] name")

    def compare_secret(self, shown: str, node_id: str) -> None:
        """See that a node has the secret of the others; `shown` is a digest of it.

        Raises:
            StoreError: nodes hold leases that have another one.
        """
        with self._begun() as connection:
            found = connection.execute(sql.KNOWN_SECRET).scalar()
            if found == shown:
                return
            others = connection.execute(sql.OTHER_HOLDERS, {"node_id": node_id}).scalars().all()
            if found is None or not others:
                connection.execute(sql.KEEP_SECRET, {"shown": shown})
                return
        raise StoreError(
            f"the secret_file of this node has another secret than the one of {', '.join(others)}:"
            " copy that file, or stop all nodes before you change the secret"
        )

    def read(self) -> ClusterRead:
        """The state of the cluster."""
        with self._begun() as connection:
            return read_cluster(connection)

    def leader(self) -> str | None:
        """The id of the node whose coordinator acts, if one does."""
        with self._begun() as connection:
            found: str | None = connection.execute(sql.LEADER).scalar()
            return found or None

    def restarts(self) -> dict[str, int]:
        """By worker: the restarts on all nodes since the last reset."""
        tenures: defaultdict[str, list[Tenure]] = defaultdict(list)
        with self._begun() as connection:
            for row in connection.execute(sql.ALL_TENURES):
                tenures[row.component_id].append(tenure(row))
        return {id_: carried(found).restart_count for id_, found in tenures.items()}

    def lives(self, component_id: str) -> tuple[NodeLife, ...]:
        """The processes of a worker on all nodes, oldest first."""
        with self._begun() as connection:
            rows = connection.execute(sql.LIVES_OF, {"component_id": component_id})
            return tuple(map(rulings.life, rows))

    def tenures(self, component_id: str) -> tuple[Tenure, ...]:
        """Where a worker was, oldest first."""
        with self._begun() as connection:
            return tuple(map(tenure, connection.execute(sql.OWN_TENURES, {"ids": [component_id]})))

    def change(self, *changes: Change) -> tuple[Changed, ...]:
        """Try changes, in one transaction."""
        with self._begun() as connection:
            return tuple(apply(connection, change) for change in changes)

    def declare_queues(self, served: Sequence[str], declared: DeclaredQueues) -> bool:
        """Store what a file says about queues, for all nodes and for programs that enqueue; if it is new."""
        values = {
            SERVED_QUEUES: json.dumps(sorted(served)),
            DECLARED: msgspec.json.encode(declared).decode(),
        }
        with self._begun() as connection:
            found = [
                connection.execute(sql.SET_META, {"key": key, "value": value}).all()
                for key, value in values.items()
            ]
        return any(found)

    def forget(self, node_id: str, by: str) -> bool:
        """Free the workers of a node that is gone, and remove it; False: its lease lasts."""
        values = {"node_id": node_id, "reason": "it was forgotten", "by": by}
        with self._begun() as connection:
            if not connection.execute(sql.GIVE_UP_NODE, values).all():
                return False
            connection.execute(sql.FREE_ASSIGNMENTS, values)
            connection.execute(sql.END_TENURES, values)
            release_orphaned(connection)
            connection.execute(sql.FORGET_NODE, values)
            return True

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    @contextmanager
    def _begun(self) -> Iterator[Connection]:
        with translated(self.name), self._engine.begin() as connection:
            yield connection
