"""What one node tells the others through the database, and hears from them: reports and orders."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self, cast

import msgspec
from sqlalchemy import Connection, Engine

from rekindle.actors.cluster.facts.looks import ClusterLook, NodeReport
from rekindle.actors.cluster.facts.orders import Order, OrderState
from rekindle.actors.cluster.facts.shipped_events import ShippedEvent, ShippedPast
from rekindle.actors.cluster.facts.wishes import Wish
from rekindle.actors.facts.records import EventRecord, Lives
from rekindle.actors.messages import WorkerStatus

from ..database.driver_errors import failure, translated
from ..database.engines import shown_url
from . import cluster_sql, order_sql
from .cluster_rows import assignment, known, node, wish
from .postgres_cluster import impatient_engine, server_url

CONNECTIONS = 3
KEPT_MS = 30 * 24 * 3600 * 1000
"""How long orders stay on record."""


class NodeDesk:
    """The connection of a node for its operators. Each method is one transaction, and may be slow."""

    def __init__(self, where: str, node_id: str, *, answers_s: float) -> None:
        url = server_url(where)
        self._name, self._node_id = shown_url(url), node_id
        self._engine = impatient_engine(url, answers_s, CONNECTIONS)

    # ── reports ──────────────────────────────────────────────────────────────────────────

    def keep_report(self, workers: tuple[WorkerStatus, ...] | None) -> None:
        """Tell the others how the workers of this node are; None: as before."""
        values = {"node_id": self._node_id}
        with self._begun() as connection:
            if workers is None:
                connection.execute(order_sql.TOUCH_REPORT, values)
            else:
                report = msgspec.json.encode(workers).decode()
                connection.execute(order_sql.KEEP_REPORT, {**values, "report": report})

    def look(self) -> ClusterLook:
        """The cluster now."""
        with self._begun() as connection:
            found = connection.execute(order_sql.OTHER_REPORTS, {"node_id": self._node_id})
            reports = tuple(
                NodeReport(
                    node_id=row.node_id,
                    at_ms=row.at_ms,
                    written_ms=row.written_ms,
                    workers=msgspec.json.decode(row.report, type=tuple[WorkerStatus, ...]),
                )
                for row in found
            )
            return ClusterLook(
                now_ms=connection.execute(cluster_sql.READ_NOW).scalar_one(),
                leader=connection.execute(cluster_sql.LEADER).scalar() or None,
                nodes=tuple(map(node, connection.execute(cluster_sql.ALL_NODES))),
                assignments=tuple(map(assignment, connection.execute(cluster_sql.ALL_ASSIGNMENTS))),
                reports=reports,
            )

    def wish(self, component_id: str) -> Wish | None:
        """What the cluster wants of a worker."""
        with self._begun() as connection:
            row = connection.execute(order_sql.ONE_WISH, {"component_id": component_id}).first()
            return None if row is None else wish(row)

    def shipped(
        self,
        component_id: str,
        except_nodes: tuple[str, ...],
        *,
        since_wall_ms: int = 0,
        limit: int,
        only: str | None = None,
    ) -> ShippedPast:
        """What nodes have sent of a worker, newest first; `only` is a type of events."""
        who: dict[str, Any] = {"component_id": component_id, "except_nodes": list(except_nodes)}
        more = {"since_wall_ms": since_wall_ms, "limit": limit, "type": only}
        with self._begun() as connection:
            rows = connection.execute(order_sql.SHIPPED_OF, {**who, **more})
            events = tuple(ShippedEvent(row.node_id, EventRecord(**known(row, EventRecord))) for row in rows)
            lives = connection.execute(order_sql.SHIPPED_LIVES, who)
            return ShippedPast(events, {row.node_id: Lives(row.deaths, int(row.uptime_ms)) for row in lives})

    # ── orders ───────────────────────────────────────────────────────────────────────────

    def give(self, order: Order, patience_s: float) -> None:
        """Put an order on record, and tell its node."""
        values = {name: getattr(order, name) for name in order.__struct_fields__}
        with self._begun() as connection:
            connection.execute(order_sql.PRUNE_ORDERS, {"kept_ms": KEPT_MS})
            connection.execute(order_sql.GIVE_ORDER, {**values, "patience_ms": round(patience_s * 1000)})
            connection.execute(order_sql.TELL, {"channel": order.node_id, "id": order.id})

    def take(self) -> tuple[Order, ...]:
        """The orders for this node that nothing has taken; each is taken once."""
        with self._begun() as connection:
            found = map(_order, connection.execute(order_sql.TAKE_ORDERS, {"node_id": self._node_id}))
            return tuple(order for order in found if order.state is OrderState.TAKEN)

    def end(self, order: Order, state: OrderState, result: str) -> None:
        """Put the result of an order on record, and tell the node that gave it."""
        values = {"id": order.id, "state": state.value, "result": result}
        with self._begun() as connection:
            connection.execute(order_sql.END_ORDER, values)
            connection.execute(order_sql.TELL, {"channel": order.from_node, "id": order.id})

    def read(self, order_id: str) -> Order:
        """An order as it is now."""
        with self._begun() as connection:
            return _order(connection.execute(order_sql.READ_ORDER, {"id": order_id}).one())

    def forget(self, order_id: str) -> None:
        """Delete a question once it is answered, which changed nothing."""
        with self._begun() as connection:
            connection.execute(order_sql.FORGET_ORDER, {"id": order_id})

    def withdraw(self, order_id: str) -> bool:
        """End an order that no node has taken; False: its node has taken it."""
        with self._begun() as connection:
            return bool(connection.execute(order_sql.WITHDRAW_ORDER, {"id": order_id}).all())

    def listener(self) -> OrderListener:
        """A connection on which this node is told of orders."""
        return OrderListener(self._engine, self._name, self._node_id)

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    @contextmanager
    def _begun(self) -> Iterator[Connection]:
        with translated(self._name), self._engine.begin() as connection:
            yield connection


class OrderListener:
    """Hears of orders as soon as they are on record."""

    def __init__(self, engine: Engine, name: str, node_id: str) -> None:
        self._name = name
        with translated(name):
            pooled = engine.raw_connection()
            self._driver = cast("Any", pooled.driver_connection)
            pooled.detach()  # it listens as long as it lives, so nothing else may use it
            self._driver.autocommit = True
            self._driver.execute(f'LISTEN "rekindle_{node_id}"')

    def heard(self, timeout_s: float) -> bool:
        """Whether something was said; waits for it that long at most."""
        try:
            return any(True for _ in self._driver.notifies(timeout=timeout_s, stop_after=1))
        except self._driver.Error as error:
            raise failure(self._name, error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._driver.close()


def _order(row: Any) -> Order:
    found = known(row, Order)
    return Order(**{**found, "state": OrderState(found["state"])})
