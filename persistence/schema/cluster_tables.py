"""The tables that the nodes of a cluster share. Loaded by migrations and models only.

Every database has them, so that there is one line of revisions; without a cluster they are empty. `labels`,
`capacity`, `members`, `place`, `refused` and `recent_deaths_ms` are JSON.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, Table, Text

from .tables import METADATA


def _number(name: str, *, key: bool = False, nullable: bool = False) -> Column[int]:
    return Column(name, BigInteger, primary_key=key, autoincrement=False, nullable=nullable)


def _text(name: str, *, key: bool = False, nullable: bool = False) -> Column[str]:
    return Column(name, Text, primary_key=key, nullable=nullable)


NODE = Table(
    "rekindle_node",
    METADATA,
    _text("id", key=True),
    *map(_text, ("name", "address", "boot_id", "life", "version")),
    *map(_text, ("labels", "capacity", "engine_node", "state", "state_reason", "state_by", "held")),
    *map(_number, ("incarnation", "renewals", "lease_until_ms", "testified_at_wall_ms")),
    _text("members"),
    _number("drain_until_ms", nullable=True),
    Column("run", Text, nullable=False, server_default=""),
)
WISH = Table(
    "rekindle_wish",
    METADATA,
    _text("component_id", key=True),
    *map(_text, ("group_name", "spec", "place", "wanted")),
    _number("revision"),
    _text("pinned", nullable=True),
    Column("min_healthy", Integer, nullable=True),
    Column("once", Integer, nullable=False, server_default="0"),
    Column("unit", Text, nullable=False, server_default=""),
    Column("beside", Text, nullable=False, server_default="[]"),
    Column("after", Text, nullable=False, server_default="{}"),
)
ASSIGNMENT = Table(
    "rekindle_assignment",
    METADATA,
    _text("component_id", key=True),
    _number("epoch"),
    _text("node_id", nullable=True),
    *map(_text, ("phase", "reason")),
    _number("since_ms"),
    _text("target", nullable=True),
    _text("refused"),
)
TENURE = Table(
    "rekindle_tenure",
    METADATA,
    _text("component_id", key=True),
    _number("epoch", key=True),
    _text("node_id"),
    _number("began_ms"),
    _number("ended_ms", nullable=True),
    _text("how", nullable=True),
    *map(_number, ("restarts", "streak")),
    _number("last_restart_ms", nullable=True),
    _text("recent_deaths_ms"),
    _number("failed_at_wall_ms", nullable=True),
    _text("failure_reason", nullable=True),
    _number("refunded"),
    _number("reset_at_wall_ms", nullable=True),
    *map(_number, ("last_generation", "noted")),
    _number("lifted_ms", nullable=True),
    *(_number(name, nullable=True) for name in ("ready_ms", "done_ms")),
    _text("timetable", nullable=True),
)
ORDER = Table(
    "rekindle_order",
    METADATA,
    _text("id", key=True),
    *map(_text, ("component_id", "node_id", "from_node", "action", "arguments", "given_by")),
    *map(_number, ("given_ms", "until_ms")),
    *map(_text, ("state", "result")),
    _number("ended_ms", nullable=True),
    Index("ix_rekindle_order_node_id", "node_id", "state"),
)
NODE_REPORT = Table(
    "rekindle_node_report",
    METADATA,
    _text("node_id", key=True),
    _number("at_ms"),
    _number("written_ms"),
    _text("report"),
)
SHIPPED_EVENT = Table(
    "rekindle_shipped_event",
    METADATA,
    _text("node_id", key=True),
    _number("number", key=True),
    _number("at_wall_ms"),
    _text("type"),
    _text("component_id", nullable=True),
    _text("payload"),
    Index(None, "component_id"),
)
RULING = Table(
    "rekindle_ruling",
    METADATA,
    _text("node_id", key=True),
    _number("number", key=True),
    _number("at_ms"),
    *map(_text, ("kind", "why", "given_by", "body")),
)
"""Every change of the case of a node; the latest one is its case now. `body` is the case as JSON."""
NODE_LIFE = Table(
    "rekindle_node_life",
    METADATA,
    _text("node_id", key=True),
    _text("component_id", key=True),
    _number("generation", key=True),
    *map(_number, ("epoch", "began_ms")),
    _number("ended_ms", nullable=True),
    _text("cause"),
    _text("fault", nullable=True),
    *map(_number, ("counted", "died", "is_hard")),
    Index(None, "ended_ms"),
    Index(None, "component_id", "epoch"),
)
"""The processes of workers on the nodes; `counted`, `died` and `is_hard` are 0 or 1."""
