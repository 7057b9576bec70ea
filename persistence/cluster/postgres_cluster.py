"""`PostgresCluster`: what the nodes share, in PostgreSQL.

Three connections: renewals of the lease never wait behind anything else, and changes never wait behind
history. No call blocks; each is answered by one message.
"""

from __future__ import annotations

import secrets
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection, Engine, Row, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.pool import NullPool

from rekindle.actors.cluster.cluster_messages import (
    Change,
    ClusterRead,
    Joined,
    JoinNode,
    JoinRefused,
    ReadCluster,
    Renew,
    RenewalRefused,
    Renewed,
)
from rekindle.actors.cluster.courier_messages import ShipJournal, TenuresRead
from rekindle.actors.cluster.facts.nodes import NodeState
from rekindle.actors.cluster.facts.tenures import Assignment, Tenure
from rekindle.actors.cluster.facts.wishes import Wish
from rekindle.actors.errors import StoreError
from rekindle.actors.ports import Receiver

from ..database.driver_errors import translated
from ..database.engines import path_or_url, postgresql_engine, shown_url
from . import cluster_sql as sql
from . import node_history, rulings
from .changes import apply
from .cluster_lane import ClusterLane
from .cluster_rows import assignment, described, node, tenure, wish
from .shared_tables import prepare

LOCK_TIMEOUT_MS = 10_000


def server_url(where: str | Path) -> URL:
    """The address of the server.

    Raises:
        StoreError: it is a file: the nodes of a cluster need a database that all of them reach.
    """
    found = path_or_url(str(where))
    if isinstance(found, str):
        raise StoreError(f"a cluster needs a PostgreSQL database that all nodes reach, not the file {found}")
    return found


class PostgresCluster:
    """The `ClusterStore` port on a PostgreSQL server."""

    def __init__(self, where: str, *, lease_s: float, node_id: str = "") -> None:
        """Bring the tables up to date.

        Raises:
            StoreError: the server cannot be reached, or its tables cannot be used.
        """
        url = server_url(where)
        self.name = shown_url(url)
        engine = postgresql_engine(url, lock_timeout_ms=LOCK_TIMEOUT_MS)
        with translated(self.name):
            prepare(engine, self.name)
        answers_s = lease_s / 3
        self._name, self._term_ms = f"{node_id}:{secrets.token_hex(8)}", round(lease_s * 500)
        """How it leads: for so long after each reading, unless it reads again."""
        self._engine = impatient_engine(url, answers_s)
        self._renewals = ClusterLane("lease", self._engine, self.name, patience_s=answers_s)
        self._changes = ClusterLane("cluster", self._engine, self.name, patience_s=lease_s)
        self._history = ClusterLane("history", self._engine, self.name, patience_s=lease_s)

    def close(self) -> None:
        """End the threads and connections."""
        self._renewals.close()
        self._changes.close()
        self._history.close()
        self._engine.dispose()

    def join(self, request: JoinNode, receiver: Receiver) -> None:
        """Begin a new life of a node."""
        self._renewals.ask(request, receiver, partial(self._join, request))

    def renew(self, request: Renew, receiver: Receiver) -> None:
        """Extend a lease."""
        self._renewals.ask(request, receiver, partial(self._renew, request))

    def read(self, request: ReadCluster, receiver: Receiver) -> None:
        """Read the state of the cluster, if no other coordinator leads."""
        self._changes.ask(request, receiver, partial(self._read, request))

    def change(self, change: Change, receiver: Receiver) -> None:
        """Try one guarded statement."""
        self._changes.ask(change, receiver, lambda connection: apply(connection, change))

    def tenures(self, keys: tuple[tuple[str, int], ...], receiver: Receiver) -> None:
        """Read the tenures of these workers and epochs."""

        def work(connection: Connection) -> TenuresRead:
            rows = connection.execute(sql.OWN_TENURES, {"ids": [id_ for id_, _ in keys]})
            found = map(tenure, rows)
            return TenuresRead(tuple(each for each in found if (each.component_id, each.epoch) in keys))

        self._changes.ask(keys, receiver, work)

    def shipped_up_to(self, node_id: str, receiver: Receiver) -> None:
        """Read how far the journal of a node was shipped."""
        self._history.ask(
            node_id, receiver, lambda connection: node_history.shipped_up_to(connection, node_id)
        )

    def ship(self, request: ShipJournal, receiver: Receiver) -> None:
        """Keep a page of the journal of a node."""
        self._history.ask(request, receiver, lambda connection: node_history.keep(connection, request))

    def _read(self, request: ReadCluster, connection: Connection) -> ClusterRead:
        lead = {"leader": self._name, "term_ms": self._term_ms}
        if request.acts and connection.execute(sql.LEAD, lead).first() is not None:
            return read_cluster(connection, request.number, judges=request.judges)
        # A coordinator that has watched the nodes knows who has been silent when it leads next.
        return ClusterRead(
            number=request.number,
            now_ms=connection.execute(sql.READ_NOW).scalar_one(),
            leads=False,
            nodes=tuple(map(node, connection.execute(sql.ALL_NODES))),
            wishes=(),
            assignments=(),
        )

    # ── the life of a node ───────────────────────────────────────────────────────────────

    def _join(self, request: JoinNode, connection: Connection) -> Joined | JoinRefused:
        machine = request.node
        connection.execute(sql.ADD_NODE, {**described(machine), "life": request.life})
        row = connection.execute(sql.LOCK_NODE, {"id": machine.id}).one()
        if (reason := _refusal(connection, request, row)) is not None:
            connection.rollback()
            return JoinRefused(reason, row.now_ms)
        if row.life != request.life:
            connection.execute(sql.BEGIN_LIFE, {**described(machine), "life": request.life})
        row = connection.execute(sql.LOCK_NODE, {"id": machine.id}).one()
        assignments, _ = _held(connection, machine.id)
        return Joined(
            node=node(row),
            now_ms=row.now_ms,
            living=tuple(map(node, connection.execute(sql.LIVING_NODES))),
            assignments=assignments,
            tenures=_tenures(connection, assignments),
        )

    def _renew(self, request: Renew, connection: Connection) -> Renewed | RenewalRefused:
        values = {name: getattr(request, name) for name in request.__struct_fields__}
        values["members"] = msgspec.json.encode(request.members).decode()
        row = connection.execute(sql.RENEW, values).first()
        if row is None:
            return _renewal_refused(connection, request)
        assignments, wishes = _held(connection, request.node_id)
        return Renewed(
            number=request.number,
            now_ms=row.now_ms,
            lease_until_ms=row.lease_until_ms,
            testified_at_wall_ms=row.testified_at_wall_ms,
            state=NodeState(row.state),
            living=tuple(map(node, connection.execute(sql.LIVING_NODES))),
            assignments=assignments,
            wishes=wishes,
            tenures=_tenures(connection, assignments),
        )


def _held(connection: Connection, node_id: str) -> tuple[tuple[Assignment, ...], tuple[Wish, ...]]:
    """What is assigned to a node."""
    rows = connection.execute(sql.OWN_ASSIGNMENTS, {"node_id": node_id})
    assignments = tuple(map(assignment, rows))
    ids = [each.component_id for each in assignments]
    wishes = tuple(map(wish, connection.execute(sql.OWN_WISHES, {"ids": ids}))) if ids else ()
    return assignments, wishes


def _refusal(connection: Connection, request: JoinNode, row: Row[Any]) -> str | None:
    machine = request.node
    connection.execute(sql.LOCK_NAME, {"name": machine.name})
    namesake = connection.execute(sql.NAMESAKE, {"name": machine.name, "id": machine.id}).first()
    if namesake is not None:
        return (
            f"another machine is called {machine.name} in this cluster: give this one another name with node,"
            f" or if that machine is gone: rekindle cluster forget {machine.name}"
        )
    left_ms = row.lease_until_ms - row.now_ms
    if row.boot_id not in ("", machine.boot_id) and left_ms > 0 and row.state not in ("lost", "left"):
        return (
            f"another machine holds the lease of node {machine.name} for {left_ms / 1000:.1f} s more: two"
            " machines must not share a state directory"
        )
    if request.not_after_ms is not None and row.now_ms > request.not_after_ms:
        return "the request was late"
    return None


def _renewal_refused(connection: Connection, request: Renew) -> RenewalRefused:
    row = connection.execute(sql.LOCK_NODE, {"id": request.node_id}).first()
    now_ms = connection.execute(sql.READ_NOW).scalar_one()
    if row is None:
        return RenewalRefused(
            number=request.number, now_ms=now_ms, state=None, incarnation=0, reason="there is no such node"
        )
    state = NodeState(row.state)
    over = state in (NodeState.LOST, NodeState.LEFT)
    return RenewalRefused(
        number=request.number,
        now_ms=now_ms,
        state=state,
        incarnation=row.incarnation,
        reason=row.state_reason if over else "",
    )


def _tenures(connection: Connection, assignments: tuple[Assignment, ...]) -> tuple[Tenure, ...]:
    ids = [each.component_id for each in assignments]
    return tuple(map(tenure, connection.execute(sql.OWN_TENURES, {"ids": ids}))) if ids else ()


def read_cluster(connection: Connection, number: int = 0, *, judges: bool = False) -> ClusterRead:
    """The state of the cluster; with `judges` the lives by which nodes are judged, too."""
    now_ms = connection.execute(sql.READ_NOW).scalar_one()
    given = tuple(map(rulings.ruling, connection.execute(sql.LATEST_RULINGS)))
    return ClusterRead(
        number=number,
        now_ms=now_ms,
        nodes=tuple(map(node, connection.execute(sql.ALL_NODES))),
        wishes=tuple(map(wish, connection.execute(sql.ALL_WISHES))),
        assignments=tuple(map(assignment, connection.execute(sql.ALL_ASSIGNMENTS))),
        tenures=tuple(map(tenure, connection.execute(sql.LATEST_TENURES))),
        rulings=given,
        lives=rulings.recent_lives(connection, given, now_ms) if judges else (),
        judged=judges,
    )


def impatient_engine(url: URL, answers_s: float, connections: int = 0) -> Engine:
    """An engine whose statements end, and whose dead connections are noticed, well within a lease.

    Args:
        url: the server.
        answers_s: how long a statement may take.
        connections: how many stay open between two uses; none: every connection is new.
    """
    patience: dict[str, Any] = {
        "connect_timeout": 2,  # the smallest that libpq knows
        "tcp_user_timeout": round(answers_s * 1000),
        "keepalives_idle": 1,
    }
    engine = create_engine(
        url.set(drivername="postgresql+psycopg"),
        **({"pool_size": connections} if connections else {"poolclass": NullPool}),
        connect_args={name: value for name, value in patience.items() if name not in url.query},
    )

    def set_up(connection: Any, _record: object) -> None:
        connection.autocommit = True
        connection.execute(f"SET statement_timeout = {round(answers_s * 1000)}")
        connection.execute("SET idle_session_timeout = 0")
        # A machine that vanished or froze between a change and its end must not keep the locks.
        connection.execute(f"SET idle_in_transaction_session_timeout = {round(answers_s * 1000)}")
        for name, value in (("idle", 1), ("interval", 1), ("count", max(1, round(answers_s)))):
            connection.execute(f"SET tcp_keepalives_{name} = {value}")
        connection.execute(f"SET tcp_user_timeout = {round(answers_s * 1000)}")
        connection.autocommit = False

    event.listen(engine, "connect", set_up)
    return engine
