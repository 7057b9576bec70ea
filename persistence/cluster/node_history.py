"""Keeps what the nodes ship of their journals: events, and the lives of the processes of workers."""

from __future__ import annotations

import time

from sqlalchemy import Connection

from rekindle.actors.cluster.courier_messages import JournalKept, ShipJournal

from . import cluster_sql as sql
from . import rulings
from .cluster_rows import event_values, life_values

DAY_MS = 86_400_000


def shipped_up_to(connection: Connection, node_id: str) -> JournalKept:
    """How far the journal of a node was shipped."""
    return JournalKept(connection.execute(sql.SHIPPED_UP_TO, {"node_id": node_id}).scalar_one())


def keep(connection: Connection, page: ShipJournal) -> JournalKept:
    """Keep a page inside the open transaction; one that is known changes nothing."""
    now_ms = connection.execute(sql.READ_NOW).scalar_one()
    shift_ms = now_ms - time.time_ns() // 1_000_000
    connection.execute(sql.SHIP_EVENT, [event_values(page.node_id, record) for record in page.records])
    if page.lives:
        connection.execute(sql.KEEP_LIFE, [life_values(life, shift_ms) for life in page.lives])
    if any(life.died for life in page.lives):
        rulings.attribute(connection, page.node_id)
    if page.keep_days is not None:
        values = {
            "node_id": page.node_id,
            "before_ms": now_ms - round(page.keep_days * DAY_MS),
            "up_to": page.records[0].id,
        }
        connection.execute(sql.FORGET_EVENTS, values)
        connection.execute(sql.FORGET_LIVES, values)
    return JournalKept(page.records[-1].id)
